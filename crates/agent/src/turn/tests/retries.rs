//! Tests of tries: how many, how long, and what is waited for.

use super::*;

#[tokio::test(start_paused = true)]
async fn requests_and_streams_have_tries_of_their_own_and_each_try_is_announced() {
    let world = World::new([
        refused(),
        refused(),
        vec![broken()],
        refused(),
        vec![broken()],
        vec![says("ok"), done(0)],
    ]);
    assert_eq!(world.turn().await.answer, "ok");
    let (down, broke) = (
        unreachable().to_string(),
        "the answer broke off: on purpose; check the server and the connection to it".to_owned(),
    );
    assert_eq!(
        world.retries(),
        [(1, 3, down.clone()), (2, 3, down.clone()), (1, 2, broke.clone()), (3, 3, down), (2, 2, broke),]
    );
    let world = World::new([refused(), refused(), refused(), refused()]);
    let error = world.turn().await.result.unwrap_err();
    assert_eq!((error.to_string(), world.retries().len()), (unreachable().to_string(), 3));
}

#[tokio::test(start_paused = true)]
async fn silence_is_sat_through_again_only_if_the_server_had_begun_to_answer() {
    let idle = |begun| ModelError::Idle { after: Duration::from_mins(5), begun };
    for step in [Step::Refuse, Step::Fail] {
        let world = World::new([vec![step(idle(false))]]);
        assert!(matches!(world.turn().await.result, Err(AgentError::Model(ModelError::Idle { .. }))));
        assert_eq!((world.requests(), world.retries()), (1, vec![]));
    }
    let world = World::new([vec![Step::Fail(idle(true))], vec![says("ok"), done(0)]]);
    assert_eq!(world.turn().await.answer, "ok");
}

#[tokio::test(start_paused = true)]
async fn a_wait_is_as_long_as_the_server_says_unless_nobody_would_sit_through_it() {
    for step in [Step::Fail, Step::Refuse] {
        let limited = |seconds| {
            let retry_after = Some(Duration::from_secs(seconds));
            vec![step(ModelError::RateLimited { message: "slow down".into(), retry_after })]
        };
        let begun = tokio::time::Instant::now();
        let world = World::new([limited(60), vec![says("ok"), done(0)]]);
        assert_eq!(world.turn().await.answer, "ok");
        assert_eq!(begun.elapsed(), Duration::from_mins(1));
        let begun = tokio::time::Instant::now();
        let world = World::new([limited(61)]);
        let error = world.turn().await.result.unwrap_err().to_string();
        assert_eq!(
            error,
            "the server is limiting requests (HTTP 429): slow down; the server asks to wait 61 s"
        );
        assert_eq!((begun.elapsed(), world.retries()), (Duration::ZERO, vec![]));
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_down_is_tried_until_the_time_for_that_is_used_up() {
    let mut world = World::new((0..100).map(|_| refused()));
    world.model.info.request_retries = 100;
    let begun = tokio::time::Instant::now();
    assert_eq!(world.turn().await.result.unwrap_err().to_string(), unreachable().to_string());
    assert_eq!(begun.elapsed(), Duration::from_mins(2), "the last try is at the end");
    assert!((10..16).contains(&world.requests()), "{}", world.requests());
    let delays: Vec<_> = (world.watcher.events().into_iter())
        .filter_map(|event| match event {
            Event::Retrying { provider, delay, left, .. } if provider == "fake" => Some((delay, left)),
            _ => None,
        })
        .collect();
    let grows = |pair: &[(Duration, Duration)]| pair[0].0 < pair[1].0 || pair[1].0 > Duration::from_secs(15);
    let (last, all) = delays.split_last().unwrap();
    assert!(all.windows(2).all(grows), "{delays:?}");
    assert!(delays.windows(2).all(|pair| pair[0].1 > pair[1].1), "{delays:?}");
    assert_eq!(last.0, last.1, "no more is left");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_asks_for_more_than_is_left_is_not_waited_for() {
    let limited = |seconds| {
        let retry_after = Some(Duration::from_secs(seconds));
        vec![Step::Refuse(ModelError::RateLimited { message: "slow down".into(), retry_after })]
    };
    let world = World::new([limited(50), limited(50), limited(21)]);
    let begun = tokio::time::Instant::now();
    let error = world.turn().await.result.unwrap_err().to_string();
    assert!(error.ends_with("the server asks to wait 21 s"), "{error}");
    assert_eq!(begun.elapsed(), Duration::from_secs(100));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_begins_gives_the_server_its_time_back() {
    let limited = || {
        let retry_after = Some(Duration::from_mins(1));
        vec![Step::Refuse(ModelError::RateLimited { message: "slow down".into(), retry_after })]
    };
    let world = World::new([limited(), limited(), vec![broken()], limited(), vec![says("ok"), done(0)]]);
    assert_eq!(world.turn().await.answer, "ok");
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_ends_a_pause_at_once() {
    let retry_after = Some(Duration::from_mins(1));
    let world = World::new([vec![Step::Refuse(ModelError::Overloaded { message: "m".into(), retry_after })]]);
    let begun = tokio::time::Instant::now();
    let interrupt = async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        world.stop.stop(Reason::Interrupted);
    };
    let (ended, ()) = tokio::join!(world.turn(), interrupt);
    assert!(matches!(ended.result, Err(AgentError::Stopped(Reason::Interrupted))));
    assert!(begun.elapsed() < Duration::from_millis(10), "{:?}", begun.elapsed());
    assert_eq!(world.retries().len(), 1);
}
