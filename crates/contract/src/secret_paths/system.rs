//! Secrets of the system. Most are readable by root only.

use super::{SecretPath, directory, file};

/// Paths that hold credentials of the system, relative to `/`.
pub fn system_secrets() -> impl Iterator<Item = &'static SecretPath> {
    SYSTEM.iter()
}

#[rustfmt::skip]
const SYSTEM: &[SecretPath] = &[
    file("etc/shadow", "hashes of passwords"),
    file("etc/shadow-", "hashes of passwords"),
    file("etc/gshadow", "hashes of passwords"),
    file("etc/gshadow-", "hashes of passwords"),
    file("etc/master.passwd", "hashes of passwords"),
    file("etc/security/opasswd", "hashes of earlier passwords"),
    file("etc/sudoers", "who may become root"),
    directory("etc/sudoers.d", "who may become root"),
    file("etc/ssh/ssh_host_*_key", "keys of this machine"),
    directory("etc/ssl/private", "keys of certificates"),
    directory("etc/pki/tls/private", "keys of certificates"),
    directory("etc/letsencrypt/accounts", "keys of a certificate account"),
    directory("etc/letsencrypt/archive", "keys of certificates"),
    directory("etc/letsencrypt/live", "keys of certificates"),
    directory("etc/letsencrypt/keys", "keys of certificates"),
    file("etc/krb5.keytab", "Kerberos keys of this machine"),
    directory("etc/wireguard", "keys of a private network"),
    directory("etc/openvpn", "keys of a private network"),
    file("etc/ipsec.secrets", "keys of a private network"),
    directory("etc/ipsec.d/private", "keys of a private network"),
    directory("etc/swanctl/private", "keys of a private network"),
    file("etc/ppp/chap-secrets", "passwords of connections"),
    file("etc/ppp/pap-secrets", "passwords of connections"),
    directory("etc/NetworkManager/system-connections", "passwords of networks"),
    directory("etc/wpa_supplicant", "passwords of networks"),
    file("etc/mysql/debian.cnf", "a database"),
    file("etc/postfix/sasl_passwd*", "a mail server"),
    file("etc/exim4/passwd.client", "a mail server"),
    file("etc/msmtprc", "a mail server"),
    directory("etc/kubernetes/pki", "keys of a cluster"),
    file("etc/kubernetes/*.conf", "keys of a cluster"),
    file("etc/rancher/k3s/k3s.yaml", "keys of a cluster"),
    file("etc/docker/key.json", "the key of a container daemon"),
    file("etc/rndc.key", "the key of a name server"),
    file("etc/bind/rndc.key", "the key of a name server"),
    file("etc/samba/smbpasswd", "hashes of passwords"),
    file("etc/cups/passwd.md5", "hashes of passwords"),
    directory("etc/credstore.encrypted", "credentials of services"),
    directory("etc/credstore", "credentials of services"),
    directory("var/lib/samba/private", "passwords and keys of a file server"),
    directory("var/lib/tailscale", "keys of a private network"),
    directory("var/lib/sss/secrets", "credentials of users"),
    file("var/lib/systemd/credential.secret", "the key of other credentials"),
    file("var/lib/rancher/k3s/server/token", "keys of a cluster"),
    directory("var/lib/kubelet/pki", "keys of a cluster"),
    directory("var/lib/cloud/instance", "what a cloud told this machine at its start"),
    directory("run/secrets", "secrets of a container"),
    directory("var/run/secrets", "secrets of a container"),
    directory("run/credentials", "credentials of services"),
    directory("run/agenix", "decrypted secrets of this machine"),
    directory("run/secrets.d", "decrypted secrets of this machine"),
    directory("var/spool/cron/crontabs", "command lines of all users"),
];
