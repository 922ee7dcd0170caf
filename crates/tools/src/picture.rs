//! Prepares images for models: detects the format by content, shrinks them, and encodes a `data:`
//! URL.

use std::io::Cursor;

use base64::{Engine, prelude::BASE64_STANDARD};
use image::{
    DynamicImage, ImageDecoder, ImageFormat, ImageReader, Limits, codecs::jpeg::JpegEncoder,
    imageops::FilterType,
};
use windlass_contract::{ToolError, files::OpenFile};

use crate::file_error;

/// Maximum size that models look at; larger images are shrunk.
const MAX_WIDTH: u32 = 2048;
const MAX_HEIGHT: u32 = 768;

/// Maximum size of a file that is read.
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// Maximum size of a file that is passed on unchanged; a larger one is encoded again.
const MAX_UNCHANGED_BYTES: usize = 8 * 1024 * 1024;

/// Maximum size of a decoded image: a small file can claim to be a huge image.
const MAX_PIXELS: u64 = 100_000_000;
const MAX_MEMORY_BYTES: u64 = 512 * 1024 * 1024;

const JPEG_QUALITY: u8 = 85;

/// An image ready for a model.
#[derive(Debug)]
pub(crate) struct FittedImage {
    /// The whole image as a `data:` URL.
    pub(crate) url: String,
    format: ImageFormat,
    /// Original size, before shrinking.
    width: u32,
    height: u32,
}

impl FittedImage {
    /// Describes the image.
    pub(crate) fn describe(&self, file: &dyn OpenFile) -> String {
        let name = match self.format {
            ImageFormat::Png => "a PNG",
            ImageFormat::Jpeg => "a JPEG",
            ImageFormat::Gif => "a GIF",
            _ => "a WebP",
        };
        format!("`{}` is {name} image of {}x{} pixels", file.path().display(), self.width, self.height)
    }
}

/// Returns true if the file begins like an image that can be shown.
pub(crate) fn is_image(head: &[u8]) -> bool {
    format(head).is_some()
}

fn format(head: &[u8]) -> Option<ImageFormat> {
    image::guess_format(head).ok().filter(|format| {
        matches!(format, ImageFormat::Png | ImageFormat::Jpeg | ImageFormat::Gif | ImageFormat::WebP)
    })
}

/// Returns an image as a `data:` URL for a model, shrunk if needed. The error is the reason why it
/// cannot be shown.
pub fn image_url(bytes: &[u8]) -> Result<String, String> {
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err("it is larger than 64 MB; make a smaller copy".to_owned());
    }
    fit(bytes).map(|fitted| fitted.url)
}

/// Reads an image and shrinks it if needed.
pub(crate) async fn load(file: &dyn OpenFile) -> Result<FittedImage, ToolError> {
    let path = file.path().display().to_string();
    let too_large =
        || ToolError::failed(format!("the image `{path}` is larger than 64 MB; make a smaller copy"));
    if file.size_bytes() > MAX_FILE_BYTES {
        return Err(too_large());
    }
    let limit = usize::try_from(file.size_bytes()).map_err(|_| too_large())?;
    let bytes = file.read_at(0, limit).await;
    let bytes = bytes.map_err(|error| file_error::failed("failed to read file", error))?;
    // The only long computation in this crate.
    let fitted = tokio::task::spawn_blocking(move || fit(&bytes)).await;
    let fitted = fitted.map_err(|_| ToolError::failed(format!("the image `{path}` could not be read")))?;
    fitted.map_err(|problem| ToolError::failed(format!("the image `{path}` cannot be shown: {problem}")))
}

/// Decodes an image to check that it is complete. Encodes it again if it is too large or in an
/// uncommon format.
fn fit(bytes: &[u8]) -> Result<FittedImage, String> {
    let format = format(bytes).ok_or("it is not a PNG, JPEG, GIF or WebP file")?;
    let (image, width, height) = decode(bytes, format)?;
    let fits = width <= MAX_WIDTH && height <= MAX_HEIGHT && bytes.len() <= MAX_UNCHANGED_BYTES;
    let keeps = matches!(format, ImageFormat::Png | ImageFormat::Jpeg);
    let (kind, encoded) = if fits && keeps {
        (format, BASE64_STANDARD.encode(bytes))
    } else {
        let kind = if format == ImageFormat::Jpeg { format } else { ImageFormat::Png };
        (kind, BASE64_STANDARD.encode(encode(&shrunk(image), kind)?))
    };
    Ok(FittedImage { url: format!("data:{};base64,{encoded}", kind.to_mime_type()), format, width, height })
}

fn decode(bytes: &[u8], format: ImageFormat) -> Result<(DynamicImage, u32, u32), String> {
    let damaged = |error: image::ImageError| match error {
        image::ImageError::Limits(_) => "unpacked it would be too large; make a smaller copy".to_owned(),
        other => format!("it is damaged ({other})"),
    };
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    let mut limits = Limits::default();
    limits.max_alloc = Some(MAX_MEMORY_BYTES);
    reader.limits(limits);
    let mut decoder = reader.into_decoder().map_err(damaged)?;
    let (width, height) = decoder.dimensions();
    if u64::from(width) * u64::from(height) > MAX_PIXELS {
        return Err(format!("with {width}x{height} pixels it is too large; make a smaller copy"));
    }
    let orientation = decoder.orientation().map_err(damaged)?;
    let mut image = DynamicImage::from_decoder(decoder).map_err(damaged)?;
    image.apply_orientation(orientation);
    Ok((image, width, height))
}

fn shrunk(image: DynamicImage) -> DynamicImage {
    if image.width() <= MAX_WIDTH && image.height() <= MAX_HEIGHT {
        return image;
    }
    image.resize(MAX_WIDTH, MAX_HEIGHT, FilterType::Triangle)
}

fn encode(image: &DynamicImage, format: ImageFormat) -> Result<Vec<u8>, String> {
    let mut bytes = Cursor::new(Vec::new());
    let written = if format == ImageFormat::Jpeg {
        image.to_rgb8().write_with_encoder(JpegEncoder::new_with_quality(&mut bytes, JPEG_QUALITY))
    } else {
        image.write_to(&mut bytes, format)
    };
    written.map_err(|error| format!("it could not be made smaller ({error})"))?;
    Ok(bytes.into_inner())
}

#[cfg(test)]
mod tests {
    use image::{Rgb, RgbImage};

    use super::*;

    fn file(width: u32, height: u32, format: ImageFormat) -> Vec<u8> {
        let mut bytes = Cursor::new(Vec::new());
        RgbImage::from_pixel(width, height, Rgb([200, 30, 30])).write_to(&mut bytes, format).unwrap();
        bytes.into_inner()
    }

    /// The kind and size of what a model gets.
    fn shown(bytes: &[u8]) -> (String, u32, u32) {
        let picture = fit(bytes).unwrap();
        let (kind, data) = picture.url.strip_prefix("data:").unwrap().split_once(";base64,").unwrap();
        let image = image::load_from_memory(&BASE64_STANDARD.decode(data).unwrap()).unwrap();
        (kind.to_owned(), image.width(), image.height())
    }

    #[test]
    fn a_small_png_or_jpeg_is_passed_on_as_it_is() {
        for (format, kind) in [(ImageFormat::Png, "image/png"), (ImageFormat::Jpeg, "image/jpeg")] {
            let bytes = file(20, 10, format);
            assert_eq!(
                fit(&bytes).unwrap().url,
                format!("data:{kind};base64,{}", BASE64_STANDARD.encode(&bytes))
            );
        }
    }

    #[test]
    fn a_large_one_is_made_to_fit_and_keeps_its_kind() {
        assert_eq!(shown(&file(4096, 100, ImageFormat::Png)), ("image/png".to_owned(), 2048, 50));
        assert_eq!(shown(&file(1000, 1536, ImageFormat::Jpeg)), ("image/jpeg".to_owned(), 500, 768));
    }

    #[test]
    fn gif_and_webp_become_png() {
        assert_eq!(shown(&file(8, 8, ImageFormat::Gif)), ("image/png".to_owned(), 8, 8));
        assert_eq!(shown(&file(8, 8, ImageFormat::WebP)), ("image/png".to_owned(), 8, 8));
    }

    #[test]
    fn a_file_that_claims_to_be_huge_is_not_unpacked() {
        let mut bomb = file(16, 16, ImageFormat::Png);
        bomb[16..24].copy_from_slice(&[0, 0, 0xC3, 0x50, 0, 0, 0xC3, 0x50]);
        let checksum = crc(&bomb[12..29]);
        bomb[29..33].copy_from_slice(&checksum.to_be_bytes());
        let problem = fit(&bomb).unwrap_err();
        assert!(problem.contains("too large"), "{problem}");
    }

    #[test]
    fn a_damaged_one_is_not_sent_to_a_server_that_would_choke_on_it() {
        let whole = file(64, 64, ImageFormat::Png);
        let problem = fit(&whole[..whole.len() / 2]).unwrap_err();
        assert!(problem.starts_with("it is damaged"), "{problem}");
        assert!(!is_image(b"just text") && !is_image(b"BM"));
    }

    /// The checksum of a PNG chunk.
    fn crc(bytes: &[u8]) -> u32 {
        !bytes.iter().fold(!0_u32, |crc, byte| {
            (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
                if crc & 1 == 1 { 0xEDB8_8320 ^ (crc >> 1) } else { crc >> 1 }
            })
        })
    }
}
