//! What crashes leave, and whose it is.

use std::collections::HashMap;

use bollard::models::{ContainerCreateBody, HostConfig};

use crate::ends::on_ground;
use crate::ground::{Ground, engine_is_here, until};

/// A container with marks, as a process leaves it that is killed after it was
/// made, or while it ran.
async fn marked(ground: &Ground, installation: &str, process: &str) -> String {
    let labels = HashMap::from([
        ("dev.glovebox.installation".to_owned(), installation.to_owned()),
        ("dev.glovebox.process".to_owned(), process.to_owned()),
    ]);
    let body = ContainerCreateBody {
        image: Some("glovebox-test/busybox:1".into()),
        cmd: Some(vec!["sleep".into(), "1000".into()]),
        labels: Some(labels),
        // Whether there is a bridge is not what is tested.
        host_config: Some(HostConfig { network_mode: Some("none".into()), ..HostConfig::default() }),
        ..ContainerCreateBody::default()
    };
    ground.docker.create_container(None, body).await.unwrap().id
}

// B35, B36, B37, B38, A65: what a process left that died, and nothing else.
on_ground!(what_a_dead_process_left_is_swept_and_nobody_elses, ground, {
    let folder = ground.folder.path().join("containers");
    let sibling = ground.sibling();
    let act = ground.act("echo up; sleep 1000").by(sibling);
    let (stop, heard) = (act.stop.clone(), act.heard.clone());
    let sweep = async {
        until("the sibling's is up", async || !heard.lock().unwrap().out.is_empty()).await;
        let mine = fs_err::read_to_string(folder.join("installation")).unwrap();
        let siblings = ground.containers().await;
        // Its mark is there, and nobody holds it; a folder of its own is too.
        fs_err::write(folder.join("processes/00ff00"), "").unwrap();
        fs_err::create_dir(folder.join("processes/00ff00.action")).unwrap();
        let dead = marked(&ground, &mine, "00ff00").await;
        ground.docker.start_container(&dead, None).await.unwrap();
        let unknown = marked(&ground, &mine, "0a0a0a").await;
        let foreign = marked(&ground, "0123", "00ff00").await;
        let odd = marked(&ground, &mine, "../installation").await;

        let told = ground.containers.sweep(true).await.unwrap();
        assert_eq!(told.gone.len(), 3, "{told:?}");
        assert_eq!(ground.containers().await.len(), 4);
        let mut swept = ground.containers.sweep(false).await.unwrap();
        let mut expected = vec![dead, unknown, odd];
        swept.gone.sort();
        expected.sort();
        assert_eq!((swept.gone, swept.left.len()), (expected, 0));
        assert_eq!(ground.containers().await, siblings);
        assert!(!folder.join("processes/00ff00").exists() && !folder.join("processes/00ff00.action").exists());
        assert!(folder.join("installation").exists());
        assert!(ground.docker.inspect_container(&foreign, None).await.is_ok());
        ground.docker.remove_container(&foreign, None).await.unwrap();
        stop.request();
    };
    let (came, ()) = tokio::join!(act.run(), sweep);
    assert_eq!(came.unwrap().out, "up\n");
});
