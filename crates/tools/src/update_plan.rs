//! `update_plan`: the model keeps the person informed about its plan.

use schemars::JsonSchema;
use serde::Deserialize;
use windlass_contract::{
    Cx, Effects, Event, Meta, Output, Tool, ToolError,
    event::{Plan, PlanStatus, PlanStep},
    meta::{Category, Example},
};

/// Show the user your plan for the task and how far you are.
///
/// Send the whole plan each time, as short steps in order. Keep exactly one step `in_progress`
/// until all are `completed`, and update the plan as soon as a step is done or the plan changes. Do
/// not use it for a task of one or two steps, and do not repeat the plan in your answer: the user
/// sees it.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct UpdatePlanArgs {
    /// Why the plan changed, in a sentence.
    explanation: Option<String>,
    /// All steps, in order.
    plan: Vec<StepArgs>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct StepArgs {
    /// What is to be done, in a few words.
    step: String,
    status: StepStatusArg,
}

/// As in the event; kept apart because comments on the variants would make a long-winded schema.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(description = "How far it is.")]
enum StepStatusArg {
    Pending,
    InProgress,
    Completed,
}

pub(crate) struct UpdatePlan;

impl Tool for UpdatePlan {
    const NAME: &'static str = "update_plan";
    type Args = UpdatePlanArgs;

    fn effects(&self, _args: &UpdatePlanArgs) -> Effects {
        Effects::none()
    }

    async fn call(&self, args: &UpdatePlanArgs, cx: &Cx) -> Result<Output, ToolError> {
        cx.events.emit(Event::PlanUpdated(args.plan()));
        Ok("Plan updated".into())
    }

    fn meta(&self) -> Meta {
        let input = r#"{"plan":[{"step":"Find the bug","status":"in_progress"},{"step":"Fix it","status":"pending"}]}"#;
        Meta {
            category: Category::Planning,
            examples: vec![Example { request: "begin with the first of two steps", input }],
            requests: [
                "make a plan of three steps",
                "tick off a step",
                "the first step is finished, go on to the next",
                "note what is still to do",
                "制定一个计划",
                "把这一步标记为完成",
                "任务分成三步",
                "下一步是什么",
            ]
            .map(str::to_owned)
            .into(),
            returns: "a confirmation".to_owned(),
            parallel: false,
            ..Meta::default()
        }
    }
}

impl UpdatePlanArgs {
    fn plan(&self) -> Plan {
        let steps = self.plan.iter().map(|step| PlanStep {
            step: step.step.clone(),
            status: match step.status {
                StepStatusArg::Pending => PlanStatus::Pending,
                StepStatusArg::InProgress => PlanStatus::InProgress,
                StepStatusArg::Completed => PlanStatus::Completed,
            },
        });
        Plan { explanation: self.explanation.clone(), plan: steps.collect() }
    }
}

#[cfg(test)]
mod tests {
    use windlass_contract::erase;

    use super::*;
    use crate::fakes::ToolHarness;

    #[tokio::test]
    async fn a_plan_is_passed_on_as_it_was_sent() {
        let desk = ToolHarness::idle();
        let input = r#"{"explanation":"why","plan":[{"step":"a","status":"completed"},{"step":"b","status":"in_progress"},{"step":"c","status":"pending"}]}"#;
        let output = desk.call(erase(UpdatePlan), input).await.unwrap();
        assert_eq!(output, "Plan updated".into());
        let [Event::PlanUpdated(plan)] = &desk.events()[..] else { panic!("{:?}", desk.events()) };
        assert_eq!(serde_json::to_string(plan).unwrap(), input);
    }

    #[tokio::test]
    async fn a_step_without_a_known_status_is_not_accepted() {
        let desk = ToolHarness::idle();
        let error =
            desk.call(erase(UpdatePlan), r#"{"plan":[{"step":"a","status":"soon"}]}"#).await.unwrap_err();
        assert!(error.message.contains("unknown variant `soon`"), "{error}");
        assert!(desk.events().is_empty());
    }
}
