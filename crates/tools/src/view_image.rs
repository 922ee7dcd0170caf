//! `view_image`: shows the model an image.

use std::{path::PathBuf, time::Duration};

use schemars::JsonSchema;
use serde::Deserialize;
use windlass_contract::{
    Content, Cx, Effects, Meta, Output, Tool, ToolError,
    files::FileError,
    meta::{Category, Example, ParameterAlias},
    verdict::{Criteria, Gives},
};

use crate::{file_error, picture};

/// Look at an image file (PNG, JPEG, GIF or WebP).
///
/// Use it when the user names an image, or to see what a program has drawn. Do not use it for
/// images that are already part of the conversation.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ViewImageArgs {
    /// The image, as an absolute path or relative to the workspace.
    path: PathBuf,
}

pub(crate) struct ViewImage {
    /// True if the model can be shown images.
    pub(crate) shows_images: bool,
}

impl Tool for ViewImage {
    const NAME: &'static str = "view_image";
    type Args = ViewImageArgs;

    fn effects(&self, args: &ViewImageArgs) -> Effects {
        Effects::read(&args.path)
    }

    async fn call(&self, args: &ViewImageArgs, cx: &Cx) -> Result<Output, ToolError> {
        if !self.shows_images {
            let text = "view_image is not allowed because you do not support image inputs";
            return Err(ToolError::bad_input(text));
        }
        let path = args.path.display();
        let file = cx.host.files().open(&args.path).await.map_err(|error| match error {
            FileError::IsDirectory { .. } | FileError::NotAFile { .. } => {
                ToolError::failed(format!("image path `{path}` is not a file")).with_source(error)
            }
            error => file_error::failed(&format!("unable to locate image at `{path}`"), error),
        })?;
        let picture = picture::load(&*file).await?;
        Ok(Output { content: vec![Content::Image(picture.url)], ..Output::default() })
    }

    fn meta(&self) -> Meta {
        Meta {
            category: Category::Files,
            examples: vec![Example {
                request: "look at a screenshot",
                input: r#"{"path":"shots/login.png"}"#,
            }],
            requests: [
                "show me the picture",
                "what can be seen in this photo",
                "look at diagram.jpg",
                "describe the image",
                "open the PNG file",
                "查看图片",
                "看一下这张截图",
                "这张照片里有什么",
                "打开图像 plan.png",
            ]
            .map(str::to_owned)
            .into(),
            constraints: vec!["large images are made to fit 2048x768 pixels".to_owned()],
            parameter_aliases: ParameterAlias::of("path", &["file_path", "image_path", "absolute_path"]),
            returns: "the image".to_owned(),
            criteria: Criteria::new(Gives::Image, Duration::from_secs(5)),
            ..Meta::default()
        }
    }
}
