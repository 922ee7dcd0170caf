//! Images that a message names with `@`. They are sent to models that take images.

use std::{
    fs,
    path::{Path, PathBuf},
};

use windlass::{Content, Family, image_url};

use crate::render::visible::visible_command;

/// The endings of the names of images.
const IMAGE_ENDINGS: [&str; 5] = ["png", "jpg", "jpeg", "gif", "webp"];

/// Maximum size of a file that is read.
const MAX_IMAGE_BYTES: u64 = 64 * 1024 * 1024;

/// Signs that follow a name in a sentence and are not part of it.
const SIGNS_AFTER_NAME: [char; 8] = [',', '.', ';', ':', '!', '?', ')', ']'];

/// An image that a message names.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PromptImage {
    /// The name as it was written.
    pub(crate) name: String,
    path: PathBuf,
}

/// Returns the mark of a file in a message. A name with blanks is quoted.
pub(crate) fn file_mark(name: &str) -> String {
    if name.contains(char::is_whitespace) { format!("@\"{name}\"") } else { format!("@{name}") }
}

/// Finds the images that a message names.
pub(crate) fn find_images(message: &str, cwd: &Path) -> Vec<PromptImage> {
    let mut images: Vec<PromptImage> = Vec::new();
    for (at, _) in message.match_indices('@') {
        if message[..at].chars().next_back().is_some_and(|before| !before.is_whitespace()) {
            continue;
        }
        let rest = &message[at + 1..];
        let name = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split(['"', '\n']).next(),
            None => {
                rest.split(char::is_whitespace).next().map(|word| word.trim_end_matches(SIGNS_AFTER_NAME))
            }
        };
        let Some(name) = name.filter(|name| has_image_ending(Path::new(name))) else { continue };
        let image = PromptImage { name: name.to_owned(), path: cwd.join(name) };
        if !images.contains(&image) {
            images.push(image);
        }
    }
    images
}

fn has_image_ending(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    IMAGE_ENDINGS.iter().any(|known| ending.eq_ignore_ascii_case(known))
}

/// Returns the path of an image that a terminal has pasted because a file was dropped on it. It may
/// be quoted, have escaped blanks, or be a `file:` URL.
pub(crate) fn dropped_image(pasted: &str) -> Option<String> {
    let text = pasted.trim();
    if text.is_empty() || text.contains('\n') {
        return None;
    }
    let quoted = |sign: char| text.strip_prefix(sign).and_then(|text| text.strip_suffix(sign));
    let path = if let Some(url) = text.strip_prefix("file://") {
        percent_decoded(url)?
    } else if let Some(quoted) = quoted('\'').or_else(|| quoted('"')) {
        quoted.to_owned()
    } else {
        text.replace("\\ ", " ")
    };
    let is_dropped = Path::new(&path).is_absolute() && has_image_ending(Path::new(&path));
    (is_dropped && !path.contains(['"', '\n']) && Path::new(&path).is_file()).then_some(path)
}

fn percent_decoded(url: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::new(), url.bytes());
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digits = [rest.next()?, rest.next()?];
            bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

impl PromptImage {
    /// Describes the image for the person who writes the message.
    pub(crate) fn describe(&self) -> String {
        let name = visible_command(&self.name);
        match fs::metadata(&self.path) {
            Ok(file) if !file.is_file() => format!("[{name}: not a file]"),
            Ok(file) if file.len() > MAX_IMAGE_BYTES => format!("[{name}: larger than 64 MB]"),
            Ok(file) => format!("[image {name}, {} KB]", file.len().div_ceil(1024)),
            Err(_) => format!("[{name}: there is no such file]"),
        }
    }

    fn load(&self) -> Result<Content, String> {
        let shown = visible_command(&self.name);
        let size = fs::metadata(&self.path).map_or(0, |file| file.len());
        if size > MAX_IMAGE_BYTES {
            return Err(format!("`{shown}` is larger than 64 MB; make a smaller copy"));
        }
        let bytes = fs::read(&self.path).map_err(|error| format!("`{shown}` cannot be read: {error}"))?;
        let url = image_url(&bytes);
        url.map(Content::Image).map_err(|problem| format!("`{shown}` cannot be sent: {problem}"))
    }
}

/// A message for the model.
#[derive(Debug)]
pub(crate) struct PromptContent {
    pub(crate) content: Vec<Content>,
    /// Something that the person should know.
    pub(crate) warning: Option<String>,
}

/// Reads the images that a message names. The error is for the person: the message is not sent.
/// Names of files that do not exist are only text, and a warning says so.
pub(crate) fn load_content(message: String, cwd: &Path, model: &str) -> Result<PromptContent, String> {
    let (images, missing): (Vec<_>, Vec<_>) =
        find_images(&message, cwd).into_iter().partition(|image| image.path.is_file());
    let missing: Vec<_> = missing.iter().map(|image| format!("`{}`", visible_command(&image.name))).collect();
    let missing = (!missing.is_empty())
        .then(|| format!("there is no file {}; the model gets only the name", missing.join(", ")));
    let takes_images = Family::of(model).shows_images;
    if !images.is_empty() && !takes_images {
        let warning = ["this model takes no images; it gets only their names".to_owned()];
        let warning = warning.into_iter().chain(missing).collect::<Vec<_>>().join("\n");
        return Ok(PromptContent { content: vec![Content::Text(message)], warning: Some(warning) });
    }
    let loaded = images.iter().map(PromptImage::load).collect::<Result<Vec<_>, _>>()?;
    let content = [Content::Text(message)].into_iter().chain(loaded).collect();
    Ok(PromptContent { content, warning: missing })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A PNG of one pixel.
    pub(crate) const PNG: &[u8] =
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89\
        \0\0\0\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\0\x05\0\x01\xff\x89\x99=\x1d\0\0\0\0IEND\xaeB`\x82";

    #[test]
    fn images_are_found_by_their_marks() {
        let names = |message: &str| -> Vec<String> {
            find_images(message, Path::new("/w")).into_iter().map(|image| image.name).collect()
        };
        assert_eq!(names("see @a.png, @\"my b.JPG\" and @a.png"), ["a.png", "my b.JPG"]);
        assert_eq!(names("mail me@x.png @c.txt @ png"), Vec::<String>::new());
        assert_eq!(file_mark("my b.jpg"), "@\"my b.jpg\"");
    }

    #[test]
    fn a_dropped_file_is_recognized_in_all_its_forms() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("my shot.png");
        fs::write(&path, PNG).unwrap();
        let path = path.to_str().unwrap();
        let escaped = path.replace(' ', "\\ ");
        let url = format!("file://{}", path.replace(' ', "%20"));
        for pasted in [path, &format!("'{path}' "), &escaped, &url] {
            assert_eq!(dropped_image(pasted).as_deref(), Some(path), "{pasted}");
        }
        assert_eq!(dropped_image("/nowhere/a.png"), None);
        assert_eq!(dropped_image("a.png"), None);
    }

    #[test]
    fn images_are_sent_to_models_that_take_them_and_problems_are_named() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.png"), PNG).unwrap();
        fs::write(folder.path().join("b.png"), "no image").unwrap();
        let load = |message: &str, model: &str| load_content(message.to_owned(), folder.path(), model);
        let sent = load("what is @a.png?", "gpt-5").unwrap();
        let [Content::Text(text), Content::Image(url)] = &sent.content[..] else { panic!("{sent:?}") };
        assert!(text == "what is @a.png?" && url.starts_with("data:image/png;base64,"), "{url}");
        let problem = load("@b.png", "gpt-5").unwrap_err();
        assert_eq!(problem, "`b.png` cannot be sent: it is not a PNG, JPEG, GIF or WebP file");
        let text_only = load("@a.png", "gpt-oss").unwrap();
        assert!(text_only.content.len() == 1 && text_only.warning.is_some());
        let missing = load("see @gone.png", "gpt-5").unwrap();
        let warning = "there is no file `gone.png`; the model gets only the name";
        assert_eq!((missing.content.len(), missing.warning.as_deref()), (1, Some(warning)));
        let described = |name: &str| find_images(name, folder.path())[0].describe();
        assert_eq!(described("@a.png"), "[image a.png, 1 KB]");
        assert_eq!(described("@gone.png"), "[gone.png: there is no such file]");
    }
}
