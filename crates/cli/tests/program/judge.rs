//! Verdicts: shown to people with `call --judge`, to models behind a result, and lowered by a model
//! that is asked.

use serde_json::{Value, json};

use crate::support::{Call, FULL_ACCESS, Server, User, Wire, command};

#[test]
fn a_person_is_shown_points_reasons_and_suggestions() {
    let user = User::new();
    let judged = |input: &str| {
        user.run(&[&["call", "--judge", "shell_command", input], &FULL_ACCESS[..]].concat()).stderr
    };
    let fine = "verdict: success, 100 % sure\n  status    40 of 40\n  data      20 of 20\n  format    20 of 20\n  \
                time      10 of 10\n  quality   10 of 10\n  criteria  met\n";
    assert_eq!(judged(r#"{"command":"echo hi"}"#), fine);
    let missing = "verdict: failure, 100 % sure\nreason: the command ended with exit code 127\nsuggestion: a program \
                   was not found: check its name, or whether it is installed\n";
    assert_eq!(judged(r#"{"command":"no-such-program-anywhere"}"#), missing);
}

/// What the model was told of its first call.
fn told(user: &User, options: &[&str], calls: &[Call]) -> Vec<String> {
    let server = Server::start([Wire::Chat.asks(calls), Wire::Chat.says("Done.")]);
    user.use_server(&server, Wire::Chat);
    user.run(&[&["exec", "do it"], options, &FULL_ACCESS[..]].concat()).assert_code(0);
    let request = server.requests().remove(1).body;
    let messages = request["messages"].as_array().into_iter().flatten();
    let outputs = messages.filter(|message| message["role"] == "tool");
    outputs.filter_map(|message| message["content"].as_str().map(str::to_owned)).collect()
}

#[test]
fn a_model_reads_a_verdict_that_says_more_than_the_result() {
    let user = User::new();
    let calls = [command("c1", "echo no; exit 3"), command("c2", "no-such-program-anywhere")];
    let [failed, missing] = &told(&user, &[], &calls)[..] else { panic!("two outputs") };
    assert!(failed.ends_with("Output:\nno\n"), "{failed}");
    let line = "Verdict: failure: the command ended with exit code 127; a program was not found: check its name, or \
                whether it is installed";
    assert!(missing.ends_with(line), "{missing}");
}

#[test]
fn a_model_that_repeats_what_failed_is_told_so() {
    let user = User::new();
    let calls = [command("c1", "exit 3"), command("c2", "exit 3")];
    let outputs = told(&user, &[], &calls);
    assert!(!outputs[0].contains("Verdict"), "{}", outputs[0]);
    assert!(outputs[1].contains("failed the same way before (2 times in a row)"), "{}", outputs[1]);
}

#[test]
fn whether_a_model_reads_verdicts_can_be_configured() {
    let calls = [command("c1", "true"), command("c2", "no-such-program-anywhere")];
    let user = User::new();
    assert!(
        told(&user, &["-c", "show_verdict=never"], &calls).iter().all(|output| !output.contains("Verdict"))
    );
    let user = User::new();
    assert!(told(&user, &["-c", "show_verdict=always"], &calls)[0].ends_with("Verdict: success"));
}

#[test]
fn a_model_that_is_asked_can_lower_a_verdict() {
    let written =
        [(Wire::Responses, json!(75), 75), (Wire::Chat, json!(0.9), 90), (Wire::Chat, json!(75), 75)];
    for (wire, confidence, read) in written {
        let user = User::new();
        let opinion = json!({
            "success": false, "confidence": confidence, "reasons": ["it wrote the wrong file"], "suggestions": []
        });
        let server = Server::start([
            wire.asks(&[command("c1", "touch wrong.txt"), command("c2", "false")]),
            wire.says(&opinion.to_string()),
            wire.says("Done."),
        ]);
        user.use_server(&server, wire);
        let ended = user
            .run(&[&["exec", "--json", "-c", "judge=model", "write right.txt"], &FULL_ACCESS[..]].concat());
        ended.assert_code(0);
        let verdicts: Vec<_> = ended
            .events()
            .iter()
            .filter_map(|event| event.pointer("/item/outcome/verdict").cloned())
            .collect();
        assert_eq!(verdicts[0]["success"], false);
        assert_eq!(verdicts[0]["confidence"], read, "{confidence}");
        assert_eq!(verdicts[0]["reasons"], json!(["it wrote the wrong file"]));
        // Nobody is asked about what failed: an opinion could not make it better.
        let requests = server.requests();
        assert_eq!(requests.len(), 3);
        let question = requests[1].body.to_string();
        assert!(question.contains("write right.txt") && question.contains("touch wrong.txt"), "{question}");
        assert!(requests[2].body.to_string().contains("it wrote the wrong file"));
        // All three are paid for.
        let usage = ended.events().last().and_then(|event| event.pointer("/usage/output_tokens").cloned());
        assert_eq!(usage, Some(json!(6)));
    }
}

#[test]
fn a_no_is_an_answer_and_no_failure() {
    let user = User::new();
    user.file("a", "1\n");
    user.file("b", "2\n");
    for (command, code) in
        [("grep x a", 0), ("diff a b", 0), ("test -f c", 0), ("grep x c", 1), ("sh -c 'exit 1'", 1)]
    {
        let ended = user.run(&["call", "--json", "shell_command", &json!({"command": command}).to_string()]);
        ended.assert_code(code);
        let told: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_ne!(told["facts"]["exit"], json!({"code": 0}), "{command}: {told:#}");
    }
}
