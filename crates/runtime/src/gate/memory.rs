//! Answers given before in this session, and the questions that are pending.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::OnceCell;
use windlass_contract::{
    Clean,
    approval::{Answer, Approver, Question},
};

/// Remembers answers until the session ends. Its clones share them.
#[derive(Debug, Clone, Default)]
pub struct SessionApprovals(Arc<Mutex<ApprovalState>>);

#[derive(Debug, Default)]
struct ApprovalState {
    /// Questions that were approved for the session.
    approved: Vec<Clean<Question>>,
    /// Their keys, which may hold secrets.
    allowed: Vec<Vec<String>>,
    /// Pending questions by their keys.
    pending: HashMap<Vec<String>, Arc<OnceCell<Answer>>>,
}

impl SessionApprovals {
    /// Returns the questions that were answered for the session, oldest first.
    pub fn list(&self) -> Vec<Clean<Question>> {
        self.state().approved.clone()
    }

    /// Forgets an answer by its position in the list. The same question is asked again. Returns
    /// false if there is none.
    pub fn revoke(&self, position: usize) -> bool {
        let mut state = self.state();
        let is_there = position < state.approved.len();
        if is_there {
            state.approved.remove(position);
            state.allowed.remove(position);
        }
        is_there
    }

    /// Returns true if all keys of a call were approved for the session.
    pub(crate) fn allows(&self, keys: &[String]) -> bool {
        let state = self.state();
        let is_allowed = |key| state.allowed.iter().flatten().any(|allowed| allowed == key);
        !keys.is_empty() && keys.iter().all(is_allowed)
    }

    /// Asks, unless the same question is pending: then its answer counts for both. A question
    /// without keys is asked each time.
    pub(crate) async fn ask(
        &self,
        approver: &dyn Approver,
        keys: &[String],
        question: &Clean<Question>,
    ) -> Answer {
        if keys.is_empty() {
            return approver.ask(question).await;
        }
        // The keys of an edit are its files. Another edit of them is another question.
        let asked: Vec<_> = keys.iter().chain([&question.details.change]).cloned().collect();
        let cell = Arc::clone(self.state().pending.entry(asked.clone()).or_default());
        let answer = cell.get_or_init(|| approver.ask(question)).await.clone();
        let mut state = self.state();
        if answer == Answer::Session && !state.allowed.iter().any(|allowed| allowed == keys) {
            state.approved.push(question.clone());
            state.allowed.push(keys.to_vec());
        }
        // The next question about it is a new one. A question that was asked meanwhile stays
        // pending.
        if state.pending.get(&asked).is_some_and(|pending| Arc::ptr_eq(pending, &cell)) {
            state.pending.remove(&asked);
        }
        answer
    }

    fn state(&self) -> MutexGuard<'_, ApprovalState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::Notify;
    use windlass_contract::{BoxFuture, Effects};
    use windlass_fakes::clean;

    use super::*;

    /// Answers when it is notified, and counts the questions.
    struct WaitingPerson {
        answer: Answer,
        asked: AtomicUsize,
        ready: Notify,
    }

    impl WaitingPerson {
        fn who_says(answer: Answer) -> Self {
            Self { answer, asked: AtomicUsize::new(0), ready: Notify::new() }
        }
    }

    impl Approver for WaitingPerson {
        fn ask<'a>(&'a self, _: &'a Clean<Question>) -> BoxFuture<'a, Answer> {
            Box::pin(async {
                self.asked.fetch_add(1, Ordering::SeqCst);
                self.ready.notified().await;
                self.answer.clone()
            })
        }
    }

    fn question(keys: &[&str]) -> Clean<Question> {
        clean(Question {
            call: "c".into(),
            tool: "t".into(),
            effects: Effects::none(),
            cwd: "/".into(),
            reason: String::new(),
            unclear: Vec::new(),
            beyond: windlass_contract::approval::Beyond::Nothing,
            keys: keys.iter().map(|key| (*key).to_owned()).collect(),
            rule: None,
            details: windlass_contract::approval::QuestionDetails::default(),
        })
    }

    #[tokio::test]
    async fn twins_are_answered_together_and_once_means_once() {
        let (memory, person) = (SessionApprovals::default(), WaitingPerson::who_says(Answer::Once));
        let question = question(&["a"]);
        let answer = async {
            tokio::task::yield_now().await;
            person.ready.notify_one();
        };
        let (one, other, ()) = tokio::join!(
            memory.ask(&person, &question.keys, &question),
            memory.ask(&person, &question.keys, &question),
            answer
        );
        assert_eq!((one, other, person.asked.load(Ordering::SeqCst)), (Answer::Once, Answer::Once, 1));
        assert!(!memory.allows(&["a".to_owned()]));
        person.ready.notify_one();
        memory.ask(&person, &question.keys, &question).await;
        assert_eq!(person.asked.load(Ordering::SeqCst), 2);
    }

    #[tokio::test]
    async fn an_edit_of_the_same_file_with_another_text_is_asked_about_for_itself() {
        let (memory, person) = (SessionApprovals::default(), WaitingPerson::who_says(Answer::Once));
        let one = question(&["a"]);
        let mut other = Question::clone(&one);
        other.details.change = "+evil".to_owned();
        let other = clean(other);
        let answer = async {
            while person.asked.load(Ordering::SeqCst) < 2 {
                tokio::task::yield_now().await;
            }
            person.ready.notify_waiters();
        };
        let (one, other) = (memory.ask(&person, &one.keys, &one), memory.ask(&person, &other.keys, &other));
        let answers = async { tokio::join!(one, other, answer) };
        let limit = std::time::Duration::from_secs(20);
        assert!(tokio::time::timeout(limit, answers).await.is_ok(), "one answer counted for both");
    }

    #[tokio::test]
    async fn for_the_session_all_of_it_must_have_been_allowed() {
        let (memory, person) = (SessionApprovals::default(), WaitingPerson::who_says(Answer::Session));
        person.ready.notify_one();
        let both = question(&["a", "b"]);
        memory.ask(&person, &both.keys, &both).await;
        let allows =
            |keys: &[&str]| memory.allows(&keys.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>());
        assert!(allows(&["a"]) && allows(&["b", "a"]));
        assert!(!allows(&["a", "c"]) && !allows(&[]));
    }

    #[tokio::test]
    async fn an_approval_is_listed_once_and_can_be_revoked() {
        let (memory, person) = (SessionApprovals::default(), WaitingPerson::who_says(Answer::Session));
        for keys in [&["a", "b"][..], &["b", "c"], &["a", "b"]] {
            person.ready.notify_one();
            let question = question(keys);
            memory.ask(&person, &question.keys, &question).await;
        }
        let allows = |key: &str| memory.clone().allows(&[key.to_owned()]);
        assert_eq!(memory.list().len(), 2);
        assert!(memory.revoke(0) && !memory.revoke(1));
        assert_eq!([allows("a"), allows("b"), allows("c")], [false, true, true]);
        assert_eq!(memory.list()[0].keys, ["b", "c"]);
    }

    #[tokio::test]
    async fn what_no_session_covers_is_asked_each_time_and_for_itself() {
        let (memory, person) = (SessionApprovals::default(), WaitingPerson::who_says(Answer::Session));
        let question = question(&[]);
        let answers = async {
            person.ready.notify_one();
            tokio::task::yield_now().await;
            person.ready.notify_one();
        };
        tokio::join!(
            memory.ask(&person, &question.keys, &question),
            memory.ask(&person, &question.keys, &question),
            answers
        );
        assert_eq!(person.asked.load(Ordering::SeqCst), 2);
        assert!(!memory.allows(&question.keys));
    }

    #[tokio::test]
    async fn a_question_that_was_dropped_can_be_asked_again() {
        let (memory, person) = (SessionApprovals::default(), WaitingPerson::who_says(Answer::Once));
        let question = question(&["a"]);
        tokio::select! {
            biased;
            _answer = memory.ask(&person, &question.keys, &question) => panic!("nobody has answered"),
            () = tokio::task::yield_now() => {}
        }
        person.ready.notify_one();
        assert_eq!(memory.ask(&person, &question.keys, &question).await, Answer::Once);
    }
}
