//! Logs and spans, for whoever runs this. Nothing is collected that nobody asked for.

use tracing_subscriber::{EnvFilter, Layer, Registry, layer::SubscriberExt, util::SubscriberInitExt};

use crate::{colour, logging};

type Boxed = Box<dyn Layer<Registry> + Send + Sync>;

/// What is sent is sent at the latest when this is dropped.
pub(crate) struct Telemetry {
    #[cfg(feature = "otel")]
    provider: Option<opentelemetry_sdk::trace::SdkTracerProvider>,
}

/// Logs to stderr with `WINDLASS_LOG=info`; spans to a collector with `OTEL_EXPORTER_OTLP_ENDPOINT`, if this was built with it.
pub(crate) fn start() -> Telemetry {
    #[cfg_attr(not(feature = "otel"), expect(unused_mut, reason = "a collector may be one more"))]
    let mut layers: Vec<Boxed> = logs().into_iter().collect();
    #[cfg(feature = "otel")]
    let provider = otel::provider().map(|provider| {
        layers.push(otel::layer(&provider));
        provider
    });
    if !layers.is_empty() {
        tracing_subscriber::registry().with(layers).init();
    }
    Telemetry {
        #[cfg(feature = "otel")]
        provider,
    }
}

fn logs() -> Option<Boxed> {
    let filter = EnvFilter::new(std::env::var("WINDLASS_LOG").ok()?);
    Some(
        tracing_subscriber::fmt::layer()
            .with_ansi(colour::is_wanted(&std::io::stderr()))
            .with_writer(logging::place)
            .with_filter(filter)
            .boxed(),
    )
}

#[cfg(feature = "otel")]
impl Drop for Telemetry {
    fn drop(&mut self) {
        if let Some(provider) = &self.provider
            && let Err(error) = provider.shutdown_with_timeout(otel::PATIENCE)
        {
            crate::note(&format!("warning: the collector did not take all spans in time: {error}"));
        }
    }
}

/// Spans by OTLP over HTTP, set up by the variables that every program with OpenTelemetry knows.
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

    use super::Boxed;

    /// How long the end of the program waits for a collector that does not answer.
    pub(super) const PATIENCE: Duration = Duration::from_secs(2);

    /// Somewhere to send spans to, if the user has named one.
    pub(super) fn provider() -> Option<SdkTracerProvider> {
        let set = |name: &str| env::var(name).is_ok_and(|value| !value.is_empty());
        let wanted = set("OTEL_EXPORTER_OTLP_ENDPOINT") || set("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
        let disabled = env::var("OTEL_SDK_DISABLED").is_ok_and(|value| value.eq_ignore_ascii_case("true"));
        if !wanted || disabled {
            return None;
        }
        // One that is there already is as good.
        let _there = rustls::crypto::ring::default_provider().install_default();
        let exporter = SpanExporter::builder().with_http().with_protocol(Protocol::HttpBinary).build();
        match exporter {
            Ok(exporter) => Some(
                SdkTracerProvider::builder()
                    .with_resource(resource())
                    .with_batch_exporter(Telling { exporter, told: AtomicBool::new(false) })
                    .build(),
            ),
            Err(error) => {
                crate::note(&format!("warning: no spans are sent to the collector: {error}"));
                None
            }
        }
    }

    /// Sends, and says so once if that does not work: the library would keep it to itself.
    #[derive(Debug)]
    struct Telling {
        exporter: SpanExporter,
        told: AtomicBool,
    }

    impl opentelemetry_sdk::trace::SpanExporter for Telling {
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

    /// Who sends: `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES`, or this program.
    fn resource() -> Resource {
        let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
        let resource = Resource::builder().with_attribute(version);
        let named = env::var("OTEL_SERVICE_NAME").is_ok_and(|name| !name.is_empty());
        if named { resource.build() } else { resource.with_service_name("windlass").build() }
    }

    /// Spans of ours alone, without what was logged in them: that may quote what a tool said.
    pub(super) fn layer(provider: &SdkTracerProvider) -> Boxed {
        tracing_opentelemetry::layer()
            .with_tracer(provider.tracer("windlass"))
            .with_location(false)
            .with_threads(false)
            .with_tracked_inactivity(false)
            .with_filter(filter_fn(|about| about.is_span() && about.target().starts_with("windlass")))
            .boxed()
    }
}
