//! A schema as received, and the targets of its references: pointers, anchors, and schemas with
//! their own names (`$id`). Other documents are never fetched.

use std::{
    collections::{BTreeSet, HashMap},
    hash::{Hash, Hasher},
    iter, ptr,
};

use serde_json::{Map, Value};

use super::{
    MAX_BYTES, MAX_DEPTH, SchemaError,
    keywords::{LIST, MAPS, ONE},
};

/// Maximum length of a URI. A place with a longer one cannot be found by it; otherwise many names
/// lengthened by one base would fill the memory.
const MAX_URI_BYTES: usize = 1_000;

/// A schema in the document, and the resource it belongs to. Two are equal if they are the same
/// place, not if their contents are equal.
#[derive(Clone, Copy)]
pub(super) struct SchemaPlace<'a> {
    pub(super) schema: &'a Value,
    pub(super) resource: usize,
}

impl SchemaPlace<'_> {
    /// Returns its identity.
    pub(super) fn id(&self) -> *const Value {
        ptr::from_ref(self.schema)
    }
}

impl PartialEq for SchemaPlace<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.id() == other.id()
    }
}

impl Eq for SchemaPlace<'_> {}

impl Hash for SchemaPlace<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id().hash(state);
    }
}

/// The whole document, or a part with its own name. References inside it are relative to it.
struct SchemaResource<'a> {
    root: &'a Value,
    uri: String,
    anchors: HashMap<&'a str, SchemaPlace<'a>>,
    /// Anchors that `$dynamicRef` may resolve to instead of one with the same name in another
    /// resource.
    dynamic: BTreeSet<&'a str>,
}

pub(super) struct SchemaDocument<'a> {
    resources: Vec<SchemaResource<'a>>,
    by_root: HashMap<*const Value, usize>,
    by_uri: HashMap<String, usize>,
    /// Number of schemas, and bytes of their names, that may still be recorded.
    left: usize,
}

impl<'a> SchemaDocument<'a> {
    pub(super) fn new(root: &'a Value) -> Result<Self, SchemaError> {
        let (by_root, by_uri) = (HashMap::new(), HashMap::new());
        let mut document = Self { resources: Vec::new(), by_root, by_uri, left: MAX_BYTES };
        document.add(root, String::new());
        document.look(SchemaPlace { schema: root, resource: 0 }, 0)?;
        let mut counts = HashMap::<&str, usize>::new();
        for name in document.resources.iter().flat_map(|resource| &resource.dynamic) {
            *counts.entry(name).or_default() += 1;
        }
        for resource in &mut document.resources {
            resource.dynamic.retain(|name| counts.get(name).is_some_and(|count| *count > 1));
        }
        Ok(document)
    }

    /// Returns the resource of a schema inside another one.
    pub(super) fn resource_of(&self, schema: &'a Value, outer: usize) -> usize {
        self.by_root.get(&ptr::from_ref(schema)).copied().unwrap_or(outer)
    }

    /// Returns the anchors of a resource that `$dynamicRef` may find from others.
    pub(super) fn dynamic(&self, resource: usize) -> impl Iterator<Item = (&'a str, SchemaPlace<'a>)> {
        let SchemaResource { anchors, dynamic, .. } = &self.resources[resource];
        dynamic.iter().filter_map(|name| Some((*name, *anchors.get(name)?)))
    }

    /// Returns the target of a reference, and its anchor if several resources have one with that
    /// name.
    pub(super) fn find(&self, from: usize, target: &str) -> Option<(SchemaPlace<'a>, Option<&'a str>)> {
        let (uri, fragment) = target.split_once('#').unwrap_or((target, ""));
        let resource = match uri {
            "" => from,
            uri => *self.by_uri.get(&resolved(&self.resources[from].uri, uri))?,
        };
        let fragment = decoded(fragment)?;
        if fragment.is_empty() || fragment.starts_with('/') {
            return Some((self.point(resource, &fragment)?, None));
        }
        let SchemaResource { anchors, dynamic, .. } = &self.resources[resource];
        let place = *anchors.get(fragment.as_str())?;
        Some((place, dynamic.get(fragment.as_str()).copied()))
    }

    fn point(&self, resource: usize, pointer: &str) -> Option<SchemaPlace<'a>> {
        let mut place = SchemaPlace { schema: self.resources[resource].root, resource };
        for name in pointer.split('/').skip(1) {
            let name = name.replace("~1", "/").replace("~0", "~");
            let schema = match place.schema {
                Value::Object(map) => map.get(&name)?,
                Value::Array(list) => list.get(name.parse::<usize>().ok()?)?,
                _ => return None,
            };
            place = SchemaPlace { schema, resource: self.resource_of(schema, place.resource) };
        }
        Some(place)
    }

    fn add(&mut self, root: &'a Value, uri: String) -> usize {
        let at = self.resources.len();
        self.by_root.insert(ptr::from_ref(root), at);
        self.by_uri.insert(uri.clone(), at);
        self.resources.push(SchemaResource { root, uri, anchors: HashMap::new(), dynamic: BTreeSet::new() });
        at
    }

    /// Records the names in a schema. Schemas that are nested too deep are refused later.
    fn look(
        &mut self,
        SchemaPlace { schema, mut resource }: SchemaPlace<'a>,
        depth: usize,
    ) -> Result<(), SchemaError> {
        self.spend(1)?;
        let Some(map) = schema.as_object().filter(|_| depth <= MAX_DEPTH) else { return Ok(()) };
        let text = |keyword: &str| map.get(keyword).and_then(Value::as_str);
        let id = text("$id").map(|id| id.split_once('#').unwrap_or((id, "")));
        if let Some((id, _)) = id.filter(|(id, _)| !id.is_empty()) {
            let uri = resolved(&self.resources[resource].uri, id);
            let uri = if uri.len() > MAX_URI_BYTES { String::new() } else { uri };
            self.spend(uri.len())?;
            if depth == 0 {
                self.by_uri.insert(uri.clone(), resource);
                self.resources[resource].uri = uri;
            } else {
                resource = self.add(schema, uri);
            }
        }
        let place = SchemaPlace { schema, resource };
        // Until 2019, an anchor was an `$id` that consists of a fragment.
        let older = id.map(|(_, fragment)| fragment).filter(|name| !name.is_empty());
        for name in [text("$anchor"), text("$dynamicAnchor"), older].into_iter().flatten() {
            self.resources[resource].anchors.entry(name).or_insert(place);
        }
        if let Some(name) = text("$dynamicAnchor") {
            self.resources[resource].dynamic.insert(name);
        }
        for schema in inside(map) {
            self.look(SchemaPlace { schema, resource }, depth + 1)?;
        }
        Ok(())
    }

    fn spend(&mut self, amount: usize) -> Result<(), SchemaError> {
        self.left = self.left.checked_sub(amount).ok_or(SchemaError::TooLarge)?;
        Ok(())
    }
}

/// Returns the direct subschemas of a schema of any draft. None is returned twice, because that
/// would take exponential time.
fn inside(schema: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    let each = schema.iter().map(|(keyword, value)| -> Box<dyn Iterator<Item = &Value>> {
        match (keyword.as_str(), value) {
            ("items", Value::Array(list)) => Box::new(list.iter()),
            ("definitions" | "dependencies", Value::Object(map)) => Box::new(map.values()),
            (name, Value::Array(list)) if LIST.contains(&name) => Box::new(list.iter()),
            (name, Value::Object(map)) if MAPS.contains(&name) => Box::new(map.values()),
            (name, one) if name == "additionalItems" || ONE.contains(&name) => Box::new(iter::once(one)),
            _ => Box::new(iter::empty()),
        }
    });
    each.flatten()
}

/// Resolves a URI against a base, by the rules of RFC 3986.
fn resolved(base: &str, uri: &str) -> String {
    let scheme = |uri: &str| uri.find([':', '/', '?']).filter(|at| uri[*at..].starts_with(':'));
    if scheme(uri).is_some() {
        return uri.to_owned();
    }
    let scheme = scheme(base).map_or(0, |at| at + 1);
    let host = base[scheme..]
        .strip_prefix("//")
        .map_or(scheme, |rest| scheme + 2 + rest.find('/').unwrap_or(rest.len()));
    let kept = match uri {
        _ if uri.starts_with("//") => return format!("{}{uri}", &base[..scheme]),
        _ if uri.starts_with('/') => host,
        _ => base.rfind('/').map_or(host, |at| (at + 1).max(host)),
    };
    let slash = if host > scheme && kept == host && !uri.starts_with('/') { "/" } else { "" };
    let path = format!("{}{slash}{uri}", &base[host..kept]);
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            ".." if parts.len() > 1 => drop(parts.pop()),
            "." | ".." => {}
            part => parts.push(part),
        }
    }
    format!("{}{}", &base[..host], parts.join("/"))
}

/// Decodes the `%XX` of a fragment. Returns `None` if the result is not UTF-8.
fn decoded(fragment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.as_bytes();
    while let [first, others @ ..] = rest {
        let escaped = (*first == b'%').then(|| others.split_at_checked(2)).flatten();
        let escaped = escaped.and_then(|(digits, rest)| {
            let digits = std::str::from_utf8(digits).ok()?;
            Some((u8::from_str_radix(digits, 16).ok()?, rest))
        });
        let (byte, next) = escaped.unwrap_or((*first, others));
        bytes.push(byte);
        rest = next;
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_are_seen_from_one_another() {
        for (base, uri, expected) in [
            ("", "a.json", "a.json"),
            ("http://x/a/b.json", "c.json", "http://x/a/c.json"),
            ("http://x/a/b/", "../c", "http://x/a/c"),
            ("http://x/a/b", "./c", "http://x/a/c"),
            ("http://x/a/b", "/c/d", "http://x/c/d"),
            ("http://x/a", "//y/c", "http://y/c"),
            ("http://x/a", "urn:b:c", "urn:b:c"),
            ("/a/b.json", "c.json", "/a/c.json"),
            ("http://x", "c", "http://x/c"),
            ("a", "../../../c", "c"),
        ] {
            assert_eq!(resolved(base, uri), expected, "{base} {uri}");
        }
        assert_eq!(decoded("/a%25b~1%zz%").unwrap(), "/a%b~1%zz%");
    }
}
