# An MCP server of a stranger's on standard input and output. Its first argument
# says how it behaves from its start, the name of a tool how it does in a call.
import json, os, socket, sys, time

mode = sys.argv[1] if len(sys.argv) > 1 else "well"
TOOLS = ["echo", "look_around", "die", "crash", "hang", "flood", "chat", "foreign", "twice", "endless", "fail"]


def say(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def forever(text):
    while True:
        sys.stdout.write(text)


def limit():
    for path in ["/sys/fs/cgroup/pids.max", "/sys/fs/cgroup/pids/pids.max"]:
        if os.path.exists(path):
            return open(path).read().strip()


def around():
    try:
        socket.create_connection(("1.1.1.1", 80), 2)
        net = "reached"
    except OSError:
        net = "none"
    try:
        open("/made", "w")
        root = "written"
    except OSError:
        root = "read-only"
    return f"{os.getuid()} {net} {root} {os.environ.get('WHO')}"


print("notes:", mode, file=sys.stderr, flush=True)
if mode == "dies":
    sys.exit("no database")
if mode == "hangs":
    time.sleep(1000)
if mode == "chats":
    print("Listening on standard input ...", flush=True)
if mode == "endless":
    forever("x" * 65536)
words = {"counts": f" At most {limit()} at once.", "wavers": " " + os.urandom(8).hex()}.get(mode, "")

for line in sys.stdin:
    message = json.loads(line)
    answer = {"id": message.get("id")}
    method = message.get("method")
    if answer["id"] is None:
        continue
    if method == "initialize":
        info = {"name": "notes", "version": "1"}
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
    elif method == "tools/list":
        tool = {"inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
        result = {"tools": [{"name": name, "description": f"Does {name}.{words}", **tool} for name in TOOLS]}
    elif method == "tools/call":
        does = message["params"]["name"]
        if does == "die":
            os._exit(3)
        if does == "crash":
            os.abort()
        if does == "hang":
            time.sleep(1000)
        if does == "flood":
            note = {"method": "notifications/message", "params": {"level": "info", "data": "x" * 60000}}
            while True:
                say(note)
        if does == "chat":
            print("done!", flush=True)
        if does == "foreign":
            say({"id": 4711, "result": {"content": []}})
        if does == "endless":
            forever("x" * 65536)
        text = around() if does == "look_around" else json.dumps(message["params"].get("arguments"))
        result = {"content": [{"type": "text", "text": text}], "isError": does == "fail"}
        if does == "twice":
            say({**answer, "result": result})
    else:
        say({**answer, "error": {"code": -32601, "message": "no such method"}})
        continue
    say({**answer, "result": result})
