//! The places where secrets stand, as patterns.

use std::sync::LazyLock;

use super::{Before, PlaceRule, is_basic_pair};
use crate::clean::{
    name::NameKind,
    rules,
    value::{self, Written},
};

/// What tokens of headers and addresses are made of.
const TOKEN: &str = r"[[:alnum:]\-._~+/=%{}$<>()]";
/// A value of an option: in quotes, or up to a blank.
const VALUE: &str = r#"(?<s>"[^"]*"|'[^']*'|[^\s'"`|;\-][^\s'"`|;]*)"#;
/// An argument of a function.
const ARGUMENT: &str =
    r#"(?:[^"'()\[\]{},]|"[^"]*"|'[^']*'|[(\[{](?:[^()\[\]{}]|[(\[{][^()\[\]{}]*[)\]}])*[)\]}])*,"#;
/// What reads a password from a pipe.
const READERS: &str = r"(?:--password-stdin|--with-token|passwd --stdin|passphrase-fd|sudo -S)";

/// The longest token of a header.
const MAX_TOKEN: usize = 8 * 1024;
/// How far a command goes on.
const MAX_COMMAND: usize = 1024;

/// Functions that take a secret, and the number of the argument that is it.
const CALLS: [(&str, usize); 3] = [
    ("fernet(|hmac.new(|aes.new(", 0),
    (
        ".login(|auth=(|auth(|auth_basic(|basicauth(|credentials(|credential(|authentication(|jwt.sign(|jwt.encode(|\
         jwt.verify(|jwt.decode(|createhmac(",
        1,
    ),
    ("mysqli(|mysqli_connect(|pdo(|getconnection(", 2),
];

/// Options of programs that take a password: programs, options, and how the password follows.
const OPTIONS: [(&str, &str, Follows); 25] = [
    ("mysql|mariadb|7z|unrar", "-p", Follows::Joined),
    ("xfreerdp", "/p:", Follows::Joined),
    ("sshpass", "-p", Follows::Either),
    ("sqlcmd|bcp ", "-P", Follows::Either),
    ("docker|podman|helm", r"login\s[^|;]*?-p", Follows::Apart),
    ("mongo|useradd|usermod|kinit|snowsql|cqlsh|az login", "-p", Follows::Apart),
    ("zip |unzip|mosquitto", "-P", Follows::Apart),
    ("redis-cli", "-a", Follows::Apart),
    ("ldap", "-w", Follows::Apart),
    ("openssl", "-k", Follows::Apart),
    ("ssh-keygen", "-N", Follows::Apart),
    ("wandb", "login", Follows::Apart),
    ("snyk", "auth", Follows::Apart),
    ("codecov", "-t", Follows::Apart),
    ("mysqladmin", "password", Follows::Apart),
    ("gh secret", "(?:--body|-b)", Follows::Apart),
    ("aws ssm", "--value", Follows::Apart),
    ("snmp-server", "community", Follows::Apart),
    ("curl|etcdctl", "(?:-u|--user|--proxy-user)", Follows::Behind(':')),
    ("http ", "(?:-a|--auth)", Follows::Behind(':')),
    ("lftp", "-u", Follows::Behind(',')),
    ("smbclient", "-U", Follows::Behind('%')),
    ("rabbitmqctl", "(?:add_user|change_password)", Follows::Words(1)),
    ("user-secrets", "set", Follows::Words(1)),
    ("htpasswd", "-b", Follows::Words(2)),
];

/// How a password follows an option.
#[derive(Debug, Clone, Copy)]
enum Follows {
    /// `-ppassword`
    Joined,
    /// `-p password`
    Apart,
    /// Both.
    Either,
    /// `-u user:password`, with some other sign for some.
    Behind(char),
    /// `command user password`: so many words come between.
    Words(usize),
}

/// All places.
pub(in crate::clean) static PLACES: LazyLock<Vec<PlaceRule>> = LazyLock::new(|| {
    let mut places = headers();
    places.extend(addresses());
    places.extend(tokens());
    places.extend(commands());
    places.extend(OPTIONS.map(|(programs, option, follows)| option_rule(programs, option, follows)));
    places.extend(CALLS.map(|(names, number)| PlaceRule {
        before: Before::Anything,
        label: "secret",
        why: "argument of a function that takes a secret",
        ..PlaceRule::new(
            names,
            format!(r#"^[^(]+\((?:{ARGUMENT}){{{number}}}[^"'()\[\]{{}},]*(?<s>"[^"]*"|'[^']*')"#),
            is_named_password,
        )
    }));
    places
});

fn is_named_password(text: &[u8]) -> bool {
    value::is_secret(text, Written::Quoted, NameKind::Password)
}

fn headers() -> Vec<PlaceRule> {
    let cookie = ("cookie", "value of a cookie that identifies someone");
    let header = |words, pattern: String, is_secret| PlaceRule {
        reach: MAX_TOKEN,
        label: "authorization",
        why: "value of an Authorization header",
        ..PlaceRule::new(words, pattern, is_secret)
    };
    vec![
        header(
            "authorization",
            format!(r#"(?i)^authorization[\\"'\] ]*[:=,][=>\\"' ]*(?:[a-z]+ )?(?<s>{TOKEN}+)"#),
            |text| {
                !text.starts_with(b"AWS4-")
                    && (is_basic_pair(text)
                        || value::is_secret(text, Written::Bare, NameKind::Token)
                        || rules::key_rule(text).is_some())
            },
        ),
        PlaceRule {
            label: "bearer-token",
            why: "what follows `Bearer`",
            ..header("bearer", format!("(?i)^bearer[ :=]+(?<s>{TOKEN}+)"), |text| {
                value::is_random_or_typed(text, 12)
            })
        },
        PlaceRule {
            label: "basic-auth",
            why: "a user and a password in base64",
            ..header("basic ", format!("(?i)^basic +(?<s>{TOKEN}+)"), is_basic_pair)
        },
        PlaceRule {
            before: Before::Start,
            label: "basic-auth",
            why: "a user and a password, or what someone is known by",
            ..header(
                "auth|x-auth",
                format!(r#"(?i)^(?:x-)?auth[\\"' ]*[:=][\\"' ]*(?<s>{TOKEN}+)"#),
                |text| is_basic_pair(text) || value::is_random(text, 24) && !text.contains(&b'('),
            )
        },
        PlaceRule {
            label: cookie.0,
            why: cookie.1,
            ..header("session=", format!("(?i)^session=(?<s>{TOKEN}+)"), |text| {
                // Where it has no capitals it is the name of a session.
                value::is_random(text, 24) && text.iter().any(u8::is_ascii_uppercase)
            })
        },
    ]
}

fn addresses() -> Vec<PlaceRule> {
    let address = |words, pattern: &str, is_secret| PlaceRule {
        label: "url-password",
        why: "password in an address",
        ..PlaceRule::new(words, pattern, is_secret)
    };
    vec![
        // `scheme://user:password@host`: only the password goes. `DOMAIN\user` may be the user.
        address(
            "://",
            r#"^://[^\s/"'`<>\\:@]*(?:\\[a-mo-qsv-zA-Z][^\s/"'`<>\\:@]*)?:(?<s>[^\s/"'`<>\\]+)@"#,
            value::is_password,
        ),
        // A key in place of a user. Those of Sentry are public.
        PlaceRule {
            far: "sentry",
            ..address("://", r#"^://(?<s>[^\s/"'`<>\\:@]+)@"#, |text| {
                value::is_random(text, 20) || rules::key_at(text).is_some()
            })
        },
        address(
            "jdbc:oracle:thin:|sqlplus ",
            "(?i)^(?:jdbc:oracle:thin:|sqlplus )[^/@]*/(?<s>[^@]+)@",
            |text| value::is_password(text),
        ),
        PlaceRule {
            before: Before::Field,
            reach: MAX_TOKEN,
            label: "url-signature",
            why: "signature of an address",
            ..PlaceRule::new(
                "sig=|signature=",
                format!(r#"(?i)^sig(?:nature)?="?(?<s>{TOKEN}{{20,}})"#),
                |text| value::is_secret(text, Written::Quoted, NameKind::Token),
            )
        },
        // `host:5432:database:user:password`, as in `.pgpass`.
        PlaceRule {
            why: "last field of a `.pgpass` line",
            ..PlaceRule::new(
                ":5432:|:5433:|:6432:|:*:",
                r"^:[0-9*]+:[\w*.-]+:[\w*.-]+:(?<s>\S+)\s*$",
                value::is_password,
            )
        },
    ]
}

fn tokens() -> Vec<PlaceRule> {
    let token = |words, pattern: &str, (label, why)| PlaceRule {
        back: 12,
        reach: 64,
        label,
        why,
        ..PlaceRule::new(words, pattern, |_| true)
    };
    vec![
        token(
            ":AA",
            r"(?:^|\D)(?<s>\d{7,11}:AA[\w-]{32,36})(?:$|[^\w-])",
            ("telegram-token", "token of a Telegram bot"),
        ),
        token(
            "Q~",
            r"(?:^|[^[:alnum:]])(?<s>[[:alnum:]]{4}Q~[\w.~-]{31,37})(?:$|[^\w.~-])",
            ("azure-client-secret", "client secret of Azure"),
        ),
        PlaceRule {
            back: 200,
            reach: 207,
            ..token(
                "discord",
                r"(?:^|[^\w-])(?<s>[\w-]{23,28}\.[\w-]{5,7}\.[\w-]{25,48})",
                ("discord-token", "token of a Discord bot"),
            )
        },
        PlaceRule {
            near: "\"kty\"",
            label: "private-key",
            why: "private part of a web key",
            ..PlaceRule::new("\"d\":", r#"^"d": *"(?<s>[\w-]+)"#, |text| value::is_random(text, 40))
        },
        PlaceRule {
            near: "\"username\"",
            label: "key",
            why: "key of an account",
            ..PlaceRule::new("\"key\":", r#"^"key": *"(?<s>\w+)"#, |text| value::is_random(text, 20))
        },
        PlaceRule {
            label: "seed-phrase",
            why: "words that a wallet is made from",
            ..PlaceRule::new(
                "mnemonic|seed phrase|seed_phrase|seedphrase|recovery phrase|recovery_phrase",
                r#"(?i)^(?:mnemonic|(?:seed|recovery)[ _]?phrase)[_phrase=:\\"' ]*(?-i:(?<s>[a-z]{3,8}(?: [a-z]{3,8}){11,23}))(?:$|[^a-z ]| [^a-z]| $)"#,
                |_| true,
            )
        },
    ]
}

fn commands() -> Vec<PlaceRule> {
    let command = |words, pattern: String, why| PlaceRule {
        reach: MAX_COMMAND,
        why,
        ..PlaceRule::new(words, pattern, value::is_password)
    };
    let given = "given to a program that reads a password";
    let echo = r#"^(?:echo|printf|print) +(?:(?:-\w+|["']?%[^\s"']*["']?) +)*"#;
    vec![
        command("echo |printf |print ", format!(r"{echo}{VALUE}[^|]*\|.*?{READERS}"), given),
        command(
            "echo |printf |print ",
            format!(r#"{echo}["']?[^\s:'"|]+:(?<s>[^\s'"|]+)[^|]*\|.*?chpasswd"#),
            given,
        ),
        command(
            "--password-stdin|--with-token|passwd --stdin|passphrase-fd|sudo -S",
            format!("^{READERS}.*?<<< *{VALUE}"),
            given,
        ),
        command("chpasswd", r#"^chpasswd.*?<<< *["']?[^\s:'"|]+:(?<s>[^\s'"|]+)"#.to_owned(), given),
        command(
            "securestring",
            r#"(?i)^securestring[^"']{0,24}(?<s>"[^"]*"|'[^']*')"#.to_owned(),
            "made a secure string",
        ),
        command(
            "identified",
            r#"(?i)^identified.{0,60}? by +(?<s>"[^"]*"|'[^']*')"#.to_owned(),
            "password of a database user",
        ),
        PlaceRule {
            before: Before::Edge,
            ..command(
                "mc alias",
                format!(r"^mc alias set(?: +\S+){{3}} +{VALUE}"),
                "option of a program that takes a password",
            )
        },
        PlaceRule {
            before: Before::Edge,
            is_secret: is_named_password,
            ..command(
                "net ",
                format!(r"^net (?:use|user) +(?:(?:/[^/\s]*|\w:) +)*\S+ +(?:(?:/[^/\s]*|\w:) +)*{VALUE}"),
                "option of a program that takes a password",
            )
        },
        // `credentials: user / password`, `the login is user / password`, `BASIC_AUTH=user:password`
        PlaceRule { is_secret: is_named_password, ..pair(r"(?:is |:)") },
        pair("="),
    ]
}

/// A user and a password behind one of these separators.
fn pair(separator: &str) -> PlaceRule {
    PlaceRule {
        why: "a user and a password",
        ..PlaceRule::new(
            "credentials|login|user/pass|authident|auth",
            format!(
                r#"(?i)^(?:credentials|login|user/pass|authident|auth)["' ]*{separator}["' ]*[[:alnum:]_.@-]+ *[:/] *(?<s>[^\s"'`,;<>\\:][^\s"'`,;<>\\]*)"#
            ),
            value::is_password,
        )
    }
}

fn option_rule(programs: &'static str, option: &str, follows: Follows) -> PlaceRule {
    let password = match follows {
        Follows::Joined => VALUE.replacen("[^\\s'\"`|;\\-]", "[^\\s'\"`|;=\\-]", 1),
        Follows::Apart => format!("[ =]+{VALUE}"),
        Follows::Either => format!("[ =]*{VALUE}"),
        Follows::Behind(sign) => format!(r#"[ =]*["']?[^\s'"{sign}]*{sign}(?<s>[^\s'"`]+)"#),
        Follows::Words(between) => format!(r"(?: +\S+){{{between}}} +{VALUE}"),
    };
    let names = programs.split('|').map(str::trim_end).collect::<Vec<_>>().join("|");
    PlaceRule {
        before: Before::Edge,
        reach: MAX_COMMAND,
        why: "option of a program that takes a password",
        ..PlaceRule::new(programs, format!(r"^(?:{names})[^|;]*?\s{option}{password}"), value::is_password)
    }
}
