//! An agent with a tool of its own in ten lines: `cargo run -p windlass --example sum`.

use windlass::{Agent, Output, ToolError, tool};

/// Add two numbers.
#[tool(pure)]
async fn add(a: f64, b: f64) -> Result<Output, ToolError> {
    Ok((a + b).to_string().into())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A script plays the model; `windlass::model::connect` speaks to a real one.
    let model = windlass::model::scripted(include_str!("sum.json"))?;
    let mut agent = Agent::builder().model(model).tool(add()).build()?;
    let answer = agent.ask("What is two and three?").await?;
    #[expect(clippy::print_stdout, reason = "an example may speak")]
    {
        println!("{answer}");
    }
    Ok(())
}
