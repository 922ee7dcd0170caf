//! Resolves aliases of parameters: names from the tools of other agents and from earlier versions.

use serde_json::{Map, Value};
use windlass_contract::meta::{AliasMeaning, ParameterAlias};

use super::{
    ArgumentRepair, RepairKind,
    names::{display_name, normalize},
    schema_fit::NameHints,
};

/// Replaces aliases by the names of the schema, and adds a hint for those that cannot be replaced.
pub(super) fn resolve(
    aliases: &[ParameterAlias],
    known: &Map<String, Value>,
    members: &mut Map<String, Value>,
    repairs: &mut Vec<ArgumentRepair>,
    hints: &mut NameHints,
) {
    for ParameterAlias { name, means } in aliases.iter().filter(|alias| !known.contains_key(alias.name)) {
        let Some(written) = members.keys().find(|written| is_written(name, written)).cloned() else {
            continue;
        };
        let value = members.get(&written).cloned().unwrap_or_default();
        let kind = match resolved(*means, &value, known, members) {
            Ok(kind) => kind,
            Err(hint) => {
                hints.add(format!("arguments.{written}"), hint);
                continue;
            }
        };
        members.remove(&written);
        let name = display_name(&written);
        let note = match *means {
            AliasMeaning::Parameter(parameter) | AliasMeaning::Switch(parameter, _) => {
                format!("`arguments.{name}`: read as `{parameter}`")
            }
            AliasMeaning::AlwaysSo(_) => format!("`arguments.{name}`: it is so in any case"),
            AliasMeaning::Remark => {
                format!("`arguments.{name}`: left out, it changes nothing about the call")
            }
        };
        repairs.push(ArgumentRepair::new(kind, note));
    }
}

/// Returns true if a name is written in any case and with any separators. Short names must be
/// equal, as they are command options: `-C` is not `-c`.
fn is_written(name: &str, written: &str) -> bool {
    name == written || normalize(name).len() > 2 && normalize(name) == normalize(written)
}

/// Sets the parameter that an alias stands for, or returns the reason why not.
fn resolved(
    means: AliasMeaning,
    value: &Value,
    known: &Map<String, Value>,
    members: &mut Map<String, Value>,
) -> Result<RepairKind, String> {
    let (parameter, wanted) = match means {
        AliasMeaning::Remark => return Ok(RepairKind::Name),
        AliasMeaning::AlwaysSo(so) if as_boolean(value) == Some(so) || value.is_null() => {
            return Ok(RepairKind::Alias);
        }
        AliasMeaning::AlwaysSo(so) => return Err(format!("here it can only be {so}")),
        AliasMeaning::Parameter(parameter) => (parameter, value.clone()),
        AliasMeaning::Switch(parameter, on) => match as_boolean(value) {
            Some(true) => (parameter, on.into()),
            Some(false) => return Ok(RepairKind::Alias),
            None => return Err(format!("it must be true or false; true means `{parameter}` \"{on}\"")),
        },
    };
    if !known.contains_key(parameter) {
        return Err("this tool has nothing like it".to_owned());
    }
    match members.get(parameter) {
        Some(given) if *given != wanted && !wanted.is_null() => {
            Err(format!("it is another name of `{parameter}`, which is given too; leave one of them out"))
        }
        Some(_) => Ok(RepairKind::Alias),
        None => {
            members.insert(parameter.to_owned(), wanted);
            Ok(RepairKind::Alias)
        }
    }
}

fn as_boolean(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(truth) => Some(*truth),
        Value::String(text) => match text.trim() {
            "true" | "True" => Some(true),
            "false" | "False" => Some(false),
            _ => None,
        },
        _ => None,
    }
}
