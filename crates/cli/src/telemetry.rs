//! Logs and spans, for operators. Nothing is collected unless requested.

use tracing_subscriber::{EnvFilter, Layer, Registry, layer::SubscriberExt, util::SubscriberInitExt};

use crate::{colour, logging};

type BoxedLayer = Box<dyn Layer<Registry> + Send + Sync>;

/// Sends the remaining spans when dropped.
pub(crate) struct TelemetryGuard {
    #[cfg(feature = "otel")]
    provider: Option<opentelemetry_sdk::trace::SdkTracerProvider>,
}

/// Starts logging to stderr with `WINDLASS_LOG=info`, and spans to a collector with
/// `OTEL_EXPORTER_OTLP_ENDPOINT`, if this build supports it.
pub(crate) fn start() -> TelemetryGuard {
    #[cfg_attr(not(feature = "otel"), expect(unused_mut, reason = "a collector may be one more"))]
    let mut layers: Vec<BoxedLayer> = logs().into_iter().collect();
    #[cfg(feature = "otel")]
    let provider = otel::provider().map(|provider| {
        layers.push(otel::layer(&provider));
        provider
    });
    if !layers.is_empty() {
        tracing_subscriber::registry().with(layers).init();
    }
    TelemetryGuard {
        #[cfg(feature = "otel")]
        provider,
    }
}

fn logs() -> Option<BoxedLayer> {
    let filter = filter(&std::env::var("WINDLASS_LOG").ok()?);
    Some(
        tracing_subscriber::fmt::layer()
            .with_ansi(colour::is_wanted(&std::io::stderr()))
            .with_writer(logging::place)
            .with_filter(filter)
            .boxed(),
    )
}

/// Reads a filter. Modules that log secrets stay quiet whatever it says.
fn filter(wanted: &str) -> EnvFilter {
    match windlass::mcp::oauth::QUIET_LOGS.parse() {
        Ok(quiet) => EnvFilter::new(wanted).add_directive(quiet),
        Err(_) => EnvFilter::new("off"),
    }
}

#[cfg(feature = "otel")]
impl Drop for TelemetryGuard {
    fn drop(&mut self) {
        if let Some(provider) = &self.provider
            && let Err(error) = provider.shutdown_with_timeout(otel::SHUTDOWN_TIMEOUT)
        {
            crate::note(&format!("warning: the collector did not accept all spans in time: {error}"));
        }
    }
}

/// Spans by OTLP over HTTP, configured by the standard OpenTelemetry variables.
#[cfg(feature = "otel")]
mod otel {
    use std::{
        env,
        sync::atomic::{AtomicBool, Ordering},
        time::Duration,
    };

    use opentelemetry::{KeyValue, trace::TracerProvider};
    use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig};
    use opentelemetry_sdk::{
        Resource,
        error::OTelSdkResult,
        trace::{SdkTracerProvider, SpanData},
    };
    use tracing_subscriber::{Layer, filter::filter_fn};

    use super::BoxedLayer;

    /// Maximum time that the program waits at its end for a collector that does not answer.
    pub(super) const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

    /// Returns the provider of spans, if the user has named a collector.
    pub(super) fn provider() -> Option<SdkTracerProvider> {
        let set = |name: &str| env::var(name).is_ok_and(|value| !value.is_empty());
        let wanted = set("OTEL_EXPORTER_OTLP_ENDPOINT") || set("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
        let disabled = env::var("OTEL_SDK_DISABLED").is_ok_and(|value| value.eq_ignore_ascii_case("true"));
        if !wanted || disabled {
            return None;
        }
        // An installed provider is fine as well.
        let _there = rustls::crypto::ring::default_provider().install_default();
        let exporter = SpanExporter::builder().with_http().with_protocol(Protocol::HttpBinary).build();
        match exporter {
            Ok(exporter) => Some(
                SdkTracerProvider::builder()
                    .with_resource(resource())
                    .with_batch_exporter(ReportingExporter { exporter, told: AtomicBool::new(false) })
                    .build(),
            ),
            Err(error) => {
                crate::note(&format!("warning: no spans are sent to the collector: {error}"));
                None
            }
        }
    }

    /// Exports spans, and reports the first failure: the library would hide it.
    #[derive(Debug)]
    struct ReportingExporter {
        exporter: SpanExporter,
        told: AtomicBool,
    }

    impl opentelemetry_sdk::trace::SpanExporter for ReportingExporter {
        async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
            let sent = self.exporter.export(batch).await;
            if let Err(error) = &sent
                && !self.told.swap(true, Ordering::Relaxed)
            {
                crate::note(&format!("warning: spans cannot be sent to the collector: {error}"));
            }
            sent
        }

        fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
            self.exporter.shutdown_with_timeout(timeout)
        }

        fn set_resource(&mut self, resource: &Resource) {
            self.exporter.set_resource(resource);
        }
    }

    /// Returns the resource: `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES`, or this program.
    fn resource() -> Resource {
        let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
        let resource = Resource::builder().with_attribute(version);
        let named = env::var("OTEL_SERVICE_NAME").is_ok_and(|name| !name.is_empty());
        if named { resource.build() } else { resource.with_service_name("windlass").build() }
    }

    /// Returns a layer of only our spans, without their log events, which may quote the output of a
    /// tool.
    pub(super) fn layer(provider: &SdkTracerProvider) -> BoxedLayer {
        tracing_opentelemetry::layer()
            .with_tracer(provider.tracer("windlass"))
            .with_location(false)
            .with_threads(false)
            .with_tracked_inactivity(false)
            .with_filter(filter_fn(|about| about.is_span() && about.target().starts_with("windlass")))
            .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_filter_shows_the_logs_of_modules_that_log_secrets() {
        for wanted in ["trace", "rmcp=trace", "rmcp::transport::auth=trace"] {
            let filter = filter(wanted).to_string();
            assert!(filter.contains(windlass::mcp::oauth::QUIET_LOGS), "{filter}");
            assert!(!filter.contains("auth=trace"), "{filter}");
        }
    }
}
