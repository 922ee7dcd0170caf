//! Settings of git that a command has written: which of them may stay.
//!
//! Git itself says what a file holds (`git config --file - --no-includes --list -z`, see
//! [`GitProgram`](super::GitProgram)); here is decided which keys are kept, with which values, and
//! a file is written from nothing but those. No file of git's is parsed here.

/// The largest settings file that is looked at.
pub(super) const MAX_CONFIG_BYTES: u64 = 1024 * 1024;

mod allowed;
mod change;

pub(super) use allowed::is_plainly_harmless;
pub(super) use change::GitConfigChange;
pub(crate) use change::GitSettingEdit;

/// One setting as git lists it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct GitSetting {
    /// Section and name in lower case, the subsection between them as it is.
    pub(crate) key: Vec<u8>,
    /// Absent for a key without `=`, which stands for `true`.
    pub(crate) value: Option<Vec<u8>>,
}

/// The parts of a key.
#[derive(Clone, Copy)]
struct KeyParts<'a> {
    section: &'a [u8],
    subsection: Option<&'a [u8]>,
    name: &'a [u8],
}

impl GitSetting {
    /// Reads what `git config --list -z` prints. Nothing, if it is not of that form.
    pub(crate) fn parse_list(output: &[u8]) -> Option<Vec<Self>> {
        let Some(entries) = output.strip_suffix(b"\0") else { return output.is_empty().then(Vec::new) };
        entries.split(|byte| *byte == 0).map(Self::parse).collect()
    }

    fn parse(entry: &[u8]) -> Option<Self> {
        // Neither a section nor a name can hold a newline, and git refuses one in a subsection.
        let mut parts = entry.splitn(2, |byte| *byte == b'\n');
        let key = parts.next()?.to_vec();
        let setting = Self { key, value: parts.next().map(<[u8]>::to_vec) };
        setting.parts().is_some().then_some(setting)
    }

    fn parts(&self) -> Option<KeyParts<'_>> {
        let first = self.key.iter().position(|byte| *byte == b'.')?;
        let last = self.key.iter().rposition(|byte| *byte == b'.')?;
        let (section, name) = (&self.key[..first], &self.key[last + 1..]);
        let is_word = |word: &[u8]| {
            !word.is_empty() && word.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
        };
        let subsection = (first < last).then(|| &self.key[first + 1..last]);
        (is_word(section) && is_word(name)).then_some(KeyParts { section, subsection, name })
    }

    /// Returns true if a setting may be kept even if a command wrote it.
    pub(crate) fn is_allowed(&self) -> bool {
        self.parts().is_some_and(|parts| allowed::is_allowed(&parts, self.value.as_deref()))
    }

    /// Tells whether no value of a setting can name a program, hooks or a file of settings.
    pub(super) fn is_harmless(&self) -> bool {
        self.parts().is_some_and(|parts| allowed::is_harmless(&parts))
    }

    /// Tells whether a setting is there to name a program, so that one that does not exist yet must
    /// not appear.
    pub(super) fn names_program(&self) -> bool {
        self.parts().is_some_and(|parts| allowed::names_program(&parts, self.value.as_deref()))
    }

    /// Tells whether a setting names a directory whose files git runs, or copies as hooks.
    pub(super) fn names_hooks(&self) -> bool {
        self.key == b"core.hookspath" || self.key == b"init.templatedir"
    }

    /// Tells whether a setting names a file with more settings.
    pub(super) fn is_include(&self) -> bool {
        self.parts()
            .is_some_and(|parts| matches!(parts.section, b"include" | b"includeif") && parts.name == b"path")
    }

    /// The name of a remote whose address this is.
    fn remote_of_url(&self) -> Option<&[u8]> {
        let parts = self.parts()?;
        (parts.section == b"remote" && parts.name == b"url").then_some(parts.subsection?)
    }

    /// The name of a remote from which git fetches objects whenever one is missing.
    pub(super) fn promisor(&self) -> Option<&[u8]> {
        let parts = self.parts()?;
        match (parts.section, parts.name) {
            (b"remote", b"promisor" | b"partialclonefilter") => parts.subsection,
            (b"extensions", b"partialclone") => self.value.as_deref(),
            _ => None,
        }
    }

    /// The key as text, for a report.
    pub(super) fn name(&self) -> String {
        String::from_utf8_lossy(&self.key).into_owned()
    }
}

/// Writes a settings file, in the form git itself uses.
pub(crate) fn write(settings: &[GitSetting]) -> Vec<u8> {
    let mut text = Vec::new();
    let mut current = None;
    for setting in settings {
        let Some(KeyParts { section, subsection, name }) = setting.parts() else { continue };
        if current != Some((section, subsection)) {
            text.push(b'[');
            text.extend_from_slice(section);
            if let Some(subsection) = subsection {
                text.extend_from_slice(b" \"");
                for byte in subsection {
                    // In a section's name, unlike in a value, a backslash stands for the next
                    // character only.
                    text.extend_from_slice(if b"\"\\".contains(byte) { b"\\" } else { b"" });
                    text.push(*byte);
                }
                text.push(b'"');
            }
            text.extend_from_slice(b"]\n");
            current = Some((section, subsection));
        }
        text.push(b'\t');
        text.extend_from_slice(name);
        if let Some(value) = &setting.value {
            text.extend_from_slice(b" = ");
            push_value(&mut text, value);
        }
        text.push(b'\n');
    }
    text
}

fn push_value(text: &mut Vec<u8>, value: &[u8]) {
    let is_plain = |byte: &u8| byte.is_ascii_graphic() && !b"\"\\#;".contains(byte);
    let needs_quotes =
        !value.iter().all(|byte| is_plain(byte) || *byte == b' ') || value.trim_ascii() != value;
    if needs_quotes || value.is_empty() {
        text.push(b'"');
        push_escaped(text, value);
        text.push(b'"');
    } else {
        text.extend_from_slice(value);
    }
}

fn push_escaped(text: &mut Vec<u8>, value: &[u8]) {
    for byte in value {
        match byte {
            b'"' | b'\\' => text.extend_from_slice(&[b'\\', *byte]),
            b'\n' => text.extend_from_slice(b"\\n"),
            b'\t' => text.extend_from_slice(b"\\t"),
            8 => text.extend_from_slice(b"\\b"),
            _ => text.push(*byte),
        }
    }
}

#[cfg(test)]
mod tests;
