//! `find`: starting points, then an expression. Only tests and actions that print are listed.

use crate::{path::WorkingDirectories, secret, shell::ShellWord};

/// Options and tests without a value, operators, and actions that print.
const ALONE: &str = "-H -L -P -a -and -o -or -not ! ( ) , -daystart -depth -d -empty -executable -false -follow \
                     -ignore_readdir_race -ls -mount -nogroup -nouser -print -print0 -prune -quit -readable -true -writable \
                     -xdev -O0 -O1 -O2 -O3";

/// Options and tests with one value, and `-printf`, which prints.
const VALUED: &str = "-amin -anewer -atime -cmin -cnewer -ctime -fstype -gid -group -ilname -iname -inum -ipath -iregex \
                      -iwholename -links -lname -maxdepth -mindepth -mmin -mtime -name -newer -newerat -newerct -newermt -path \
                      -perm -printf -regex -regextype -samefile -size -type -uid -used -user -wholename -xtype";

/// Returns an error that says why a `find` command is not harmless.
pub(super) fn check(words: &[&ShellWord], places: &WorkingDirectories) -> Result<(), String> {
    let is = |list: &str, word: &str| list.split_whitespace().any(|each| each == word);
    let mut words = words.iter();
    let mut expression = false;
    let mut negated = false;
    while let Some(word) = words.next() {
        // A negated name is excluded, not searched.
        let left_out = std::mem::replace(&mut negated, matches!(word.text.as_str(), "!" | "-not"));
        let text = word.text.as_str();
        if is(ALONE, text) {
            expression |= !matches!(text, "-H" | "-L" | "-P");
        } else if is(VALUED, text) {
            expression = true;
            let value = words.next().ok_or_else(|| format!("`{text}` has no value"))?;
            if value.could_be_an_option() {
                return Err(format!("a name that matches `{}` may be an action; quote it", value.text));
            }
            let names = matches!(text, "-name" | "-iname" | "-path" | "-ipath" | "-wholename");
            let secret = secret::kept_in(&value.text, true, places);
            if let Some(secret) = secret.filter(|_| !(left_out && names)) {
                return Err(secret);
            }
        } else if expression || text.starts_with('-') || word.could_be_an_option() {
            return Err(format!(
                "`{text}` is not known to be harmless (-exec and -ok run programs, -delete and -f… write)"
            ));
        } else if let Some(secret) = secret::in_names(text, places) {
            return Err(secret);
        }
    }
    Ok(())
}
