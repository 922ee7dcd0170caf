//! The rules of a sandbox for files that this process opens itself, so that a call reaches no more
//! than its commands.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use windlass_files::FileRules;
use windlass_sandbox::{ProtectedPaths, Zygotes};

use crate::{
    launch::SandboxedLaunch,
    workspace_guard::{git_program::SandboxedGit, is_protected},
};

/// The file rules of sandboxed commands. Protected paths are collected at the first write.
#[derive(Debug)]
pub(crate) struct SandboxFileRules {
    sandbox: Arc<SandboxedLaunch>,
    protected: OnceLock<Result<Arc<ProtectedPaths>, String>>,
}

impl SandboxFileRules {
    pub(crate) fn new(sandbox: Arc<SandboxedLaunch>) -> Self {
        Self { sandbox, protected: OnceLock::new() }
    }

    /// Collects the protected paths of the roots, as commands are held to them.
    fn protected_paths(&self, roots: &[PathBuf]) -> Result<Arc<ProtectedPaths>, String> {
        let Some(guard) = &self.sandbox.guard else { return Ok(Arc::default()) };
        let mut zygotes = Zygotes::default();
        let writable = roots.to_vec();
        let mut git = SandboxedGit { environment: &guard.git, writable, zygotes: &mut zygotes };
        guard.protected(roots, &mut git).map_err(|error| error.to_string())
    }
}

impl FileRules for SandboxFileRules {
    fn writable(&self) -> &[PathBuf] {
        &self.sandbox.spec.rules.writable
    }

    fn hidden(&self, roots: &[PathBuf]) -> Vec<PathBuf> {
        self.sandbox.spec.hidden(roots)
    }

    fn shown(&self, hidden: &[PathBuf]) -> Vec<PathBuf> {
        self.sandbox.spec.shown(hidden)
    }

    fn private_tmp(&self) -> Option<PathBuf> {
        self.sandbox.spec.temporary.made().map(Path::to_owned)
    }

    fn is_protected(&self, real: &Path, roots: &[PathBuf]) -> Result<bool, String> {
        if self.sandbox.preview.is_some() {
            return Err("file tools change nothing in a preview: use a command".to_owned());
        }
        let protected = self.protected.get_or_init(|| self.protected_paths(roots));
        protected.as_ref().map(|protected| is_protected(protected, real, roots)).map_err(Clone::clone)
    }
}
