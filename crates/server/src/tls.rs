//! SRV-3: TLS by certificate files. The files are read again when they are replaced, so that a renewed certificate
//! needs no restart.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustls::ServerConfig as TlsConfig;
use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use tokio_rustls::TlsAcceptor;
use webpki::{EndEntityCert, KeyUsage};
use windlass_core::clock::Clock;

use crate::app::lock;

/// Files of a certificate, in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, followed by those of its issuers.
    pub certificate: PathBuf,
    /// Its private key, unencrypted.
    pub key: PathBuf,
}

/// Reason a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Cause of the failure.
        source: std::io::Error,
    },
    /// A file is not PEM.
    #[error("{} is not a PEM file: {source}", path.display())]
    NotPem {
        /// The file.
        path: PathBuf,
        /// Cause of the failure.
        source: PemError,
    },
    /// The file of the certificate contains none.
    #[error("{} contains no certificate: expected `-----BEGIN CERTIFICATE-----`", .0.display())]
    NoCertificate(PathBuf),
    /// The file of the key contains none.
    #[error(
        "{} contains no private key that can be used: expected `-----BEGIN PRIVATE KEY-----`; an encrypted key must be \
         decrypted first, as with `openssl pkey`",
        .0.display()
    )]
    NoKey(PathBuf),
    /// Certificate and key do not belong together.
    #[error("the key in {} does not belong to the first certificate in {}", key.display(), certificate.display())]
    Mismatch {
        /// File of the certificate.
        certificate: PathBuf,
        /// File of the key.
        key: PathBuf,
    },
    /// The certificate has expired.
    #[error("the certificate in {} expired {days} days ago: renew it", path.display())]
    Expired {
        /// The file.
        path: PathBuf,
        /// Days since then.
        days: u64,
    },
    /// The certificate is not valid yet.
    #[error("the certificate in {} is not valid for another {days} days: check the clock of this machine", path.display())]
    NotYet {
        /// The file.
        path: PathBuf,
        /// Days until then.
        days: u64,
    },
    /// The certificate or the key is of an unknown kind.
    #[error("the certificate in {} cannot be used: {reason}", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// Reason in words.
        reason: String,
    },
}

/// The certificate in use.
pub(crate) struct Tls {
    files: TlsFiles,
    clock: Arc<dyn Clock>,
    warn: Arc<dyn Fn(&str) + Send + Sync>,
    now: Mutex<InUse>,
}

struct InUse {
    acceptor: TlsAcceptor,
    /// State of the files that were read last, successfully or not.
    seen: Seen,
}

/// Inode, size and time of change of the two files.
type Seen = [Option<(u64, u64, i64, i64)>; 2];

/// A certificate that was read.
struct Loaded {
    acceptor: TlsAcceptor,
    names: Vec<String>,
}

impl Tls {
    /// Reads the files. Returns the host names in the certificate, too.
    pub(crate) fn open(
        files: TlsFiles,
        clock: Arc<dyn Clock>,
        warn: Arc<dyn Fn(&str) + Send + Sync>,
    ) -> Result<(Self, Vec<String>), TlsError> {
        let seen = seen(&files);
        let Loaded { acceptor, names } = load(&files, &*clock)?;
        let now = Mutex::new(InUse { acceptor, seen });
        let tls = Self {
            files,
            clock,
            warn,
            now,
        };
        Ok((tls, names))
    }

    /// Returns what accepts the next connection. Files that were replaced are read first; if they cannot be used, the
    /// last valid certificate stays.
    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        let mut now = lock(&self.now);
        let seen = seen(&self.files);
        if seen != now.seen {
            now.seen = seen;
            match load(&self.files, &*self.clock) {
                Ok(loaded) => now.acceptor = loaded.acceptor,
                Err(error) => (self.warn)(&format!("keeping the last valid certificate: {error}")),
            }
        }
        now.acceptor.clone()
    }
}

fn seen(files: &TlsFiles) -> Seen {
    let state = |path: &Path| {
        let of = |meta: Metadata| (meta.ino(), meta.size(), meta.mtime(), meta.mtime_nsec());
        std::fs::metadata(path).ok().map(of)
    };
    [state(&files.certificate), state(&files.key)]
}

fn load(files: &TlsFiles, clock: &dyn Clock) -> Result<Loaded, TlsError> {
    let chain = certificates(&files.certificate)?;
    let key = private_key(&files.key)?;
    let names = match chain.first() {
        Some(first) => examined(first, &files.certificate, clock)?,
        None => return Err(TlsError::NoCertificate(files.certificate.clone())),
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let unusable = |error: rustls::Error| match error {
        rustls::Error::InconsistentKeys(_) => TlsError::Mismatch {
            certificate: files.certificate.clone(),
            key: files.key.clone(),
        },
        other => TlsError::Unusable {
            path: files.certificate.clone(),
            reason: other.to_string(),
        },
    };
    let config = TlsConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(unusable)?;
    let mut config = config
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(unusable)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Loaded {
        acceptor: TlsAcceptor::from(Arc::new(config)),
        names,
    })
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    std::fs::read(path).map_err(|source| TlsError::Read {
        path: path.to_owned(),
        source,
    })
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let content = read(path)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&content).collect();
    found.map_err(|source| TlsError::NotPem {
        path: path.to_owned(),
        source,
    })
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    let content = read(path)?;
    PrivateKeyDer::from_pem_slice(&content).map_err(|source| match source {
        PemError::NoItemsFound => TlsError::NoKey(path.to_owned()),
        source => TlsError::NotPem {
            path: path.to_owned(),
            source,
        },
    })
}

/// Checks the time of a certificate, and returns its host names. Issuers are not checked: a certificate may come from an
/// authority that only the clients know.
fn examined(
    certificate: &CertificateDer<'_>,
    path: &Path,
    clock: &dyn Clock,
) -> Result<Vec<String>, TlsError> {
    let parsed = EndEntityCert::try_from(certificate).map_err(|error| TlsError::Unusable {
        path: path.to_owned(),
        reason: error.to_string(),
    })?;
    let now = UnixTime::since_unix_epoch(Duration::from_millis(clock.now().0));
    // Without trusted issuers this always fails; the time is checked before the issuer.
    let usage = KeyUsage::server_auth();
    match parsed.verify_for_usage(&[], &[], &[], now, usage, None, None) {
        Err(webpki::Error::CertExpired { not_after, .. }) => Err(TlsError::Expired {
            path: path.to_owned(),
            days: days(not_after, now),
        }),
        Err(webpki::Error::CertNotValidYet { not_before, .. }) => Err(TlsError::NotYet {
            path: path.to_owned(),
            days: days(now, not_before),
        }),
        _ => {
            let names = parsed.valid_dns_names().filter(|name| !name.contains('*'));
            Ok(names.map(str::to_owned).collect())
        }
    }
}

fn days(from: UnixTime, to: UnixTime) -> u64 {
    to.as_secs().saturating_sub(from.as_secs()) / (24 * 60 * 60)
}
