#include "array_size.h"
#include "memory.h"

/* The driver lays out rows in multiples of ROW_BYTES and levels in multiples of LEVEL_BYTES, and takes memory from the
 * GPU in blocks (memory_taken). */
#define ROW_BYTES 64u
#define LEVEL_BYTES 512u

/* Bits of a format: per pixel (compressed formats, video planes) or per channel. */
struct format_size {
  CUarray_format format;
  unsigned int bits;
  unsigned int of_pixel;
};

static const struct format_size formats[] = {
    {CU_AD_FORMAT_UNSIGNED_INT8, 8, 0},
    {CU_AD_FORMAT_UNSIGNED_INT16, 16, 0},
    {CU_AD_FORMAT_UNSIGNED_INT32, 32, 0},
    {CU_AD_FORMAT_SIGNED_INT8, 8, 0},
    {CU_AD_FORMAT_SIGNED_INT16, 16, 0},
    {CU_AD_FORMAT_SIGNED_INT32, 32, 0},
    {CU_AD_FORMAT_HALF, 16, 0},
    {CU_AD_FORMAT_FLOAT, 32, 0},
    {CU_AD_FORMAT_NV12, 12, 1},
    {CU_AD_FORMAT_UNORM_INT8X1, 8, 1},
    {CU_AD_FORMAT_UNORM_INT8X2, 16, 1},
    {CU_AD_FORMAT_UNORM_INT8X4, 32, 1},
    {CU_AD_FORMAT_UNORM_INT16X1, 16, 1},
    {CU_AD_FORMAT_UNORM_INT16X2, 32, 1},
    {CU_AD_FORMAT_UNORM_INT16X4, 64, 1},
    {CU_AD_FORMAT_SNORM_INT8X1, 8, 1},
    {CU_AD_FORMAT_SNORM_INT8X2, 16, 1},
    {CU_AD_FORMAT_SNORM_INT8X4, 32, 1},
    {CU_AD_FORMAT_SNORM_INT16X1, 16, 1},
    {CU_AD_FORMAT_SNORM_INT16X2, 32, 1},
    {CU_AD_FORMAT_SNORM_INT16X4, 64, 1},
    {CU_AD_FORMAT_BC1_UNORM, 4, 1},
    {CU_AD_FORMAT_BC1_UNORM_SRGB, 4, 1},
    {CU_AD_FORMAT_BC2_UNORM, 8, 1},
    {CU_AD_FORMAT_BC2_UNORM_SRGB, 8, 1},
    {CU_AD_FORMAT_BC3_UNORM, 8, 1},
    {CU_AD_FORMAT_BC3_UNORM_SRGB, 8, 1},
    {CU_AD_FORMAT_BC4_UNORM, 4, 1},
    {CU_AD_FORMAT_BC4_SNORM, 4, 1},
    {CU_AD_FORMAT_BC5_UNORM, 8, 1},
    {CU_AD_FORMAT_BC5_SNORM, 8, 1},
    {CU_AD_FORMAT_BC6H_UF16, 8, 1},
    {CU_AD_FORMAT_BC6H_SF16, 8, 1},
    {CU_AD_FORMAT_BC7_UNORM, 8, 1},
    {CU_AD_FORMAT_BC7_UNORM_SRGB, 8, 1},
    {CU_AD_FORMAT_P010, 24, 1},
    {CU_AD_FORMAT_P016, 24, 1},
    {CU_AD_FORMAT_NV16, 16, 1},
    {CU_AD_FORMAT_P210, 32, 1},
    {CU_AD_FORMAT_P216, 32, 1},
    {CU_AD_FORMAT_YUY2, 16, 1},
    {CU_AD_FORMAT_Y210, 32, 1},
    {CU_AD_FORMAT_Y216, 32, 1},
    {CU_AD_FORMAT_AYUV, 32, 1},
    {CU_AD_FORMAT_Y410, 32, 1},
    {CU_AD_FORMAT_Y416, 64, 1},
    {CU_AD_FORMAT_Y444_PLANAR8, 24, 1},
    {CU_AD_FORMAT_Y444_PLANAR10, 48, 1},
    {CU_AD_FORMAT_YUV444_8bit_SemiPlanar, 24, 1},
    {CU_AD_FORMAT_YUV444_16bit_SemiPlanar, 48, 1},
    {CU_AD_FORMAT_UNORM_INT_101010_2, 32, 1},
};

/* An unknown format counts like the largest known one. */
static uint64_t bits_per_pixel(CUarray_format format, unsigned int channels) {
  for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
    if (formats[i].format == format)
      return formats[i].of_pixel ? formats[i].bits : (uint64_t)formats[i].bits * channels;
  return 128;
}

bool array_has_channels(const CUDA_ARRAY3D_DESCRIPTOR *array) {
  unsigned int channels = array->NumChannels;
  for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
    if (formats[i].format == array->Format && !formats[i].of_pixel)
      return channels == 1 || channels == 2 || channels == 4;
  return true;
}

static uint64_t at_least_one(uint64_t size) {
  return size == 0 ? 1 : size;
}

static uint64_t round_up(uint64_t bytes, uint64_t step) {
  return bytes > UINT64_MAX - step ? UINT64_MAX : (bytes + step - 1) / step * step;
}

static uint64_t bytes_of_level(const CUDA_ARRAY3D_DESCRIPTOR *array, unsigned int level) {
  /* For layered arrays and cubes Depth holds the layers or faces, which are the same on every level. An unused
   * dimension is 0. */
  unsigned int shift = array->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP) ? 0 : level;
  uint64_t bits =
      memory_product(at_least_one((uint64_t)array->Width >> level), bits_per_pixel(array->Format, array->NumChannels));
  if (bits == UINT64_MAX) return bits;
  uint64_t row = round_up(bits / 8 + (bits % 8 != 0), ROW_BYTES);
  uint64_t bytes = memory_product(row, at_least_one((uint64_t)array->Height >> level));
  bytes = memory_product(bytes, at_least_one((uint64_t)array->Depth >> shift));
  return round_up(bytes, LEVEL_BYTES);
}

static int has_memory(const CUDA_ARRAY3D_DESCRIPTOR *array) {
  return (array->Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)) == 0;
}

uint64_t array_bytes(const CUDA_ARRAY3D_DESCRIPTOR *array) {
  return has_memory(array) ? memory_taken(bytes_of_level(array, 0)) : 0;
}

uint64_t mipmap_bytes(const CUDA_ARRAY3D_DESCRIPTOR *array, unsigned int levels) {
  uint64_t sum = 0;
  uint64_t longest = array->Width > array->Height ? array->Width : array->Height;
  if (array->Depth > longest) longest = array->Depth;
  if (!has_memory(array)) return 0;
  for (unsigned int level = 0; level < levels && level < 64 && (level == 0 || longest >> level > 0); level++) {
    uint64_t bytes = bytes_of_level(array, level);
    sum = sum + bytes < sum ? UINT64_MAX : sum + bytes;
    if (sum == UINT64_MAX) break;
  }
  return memory_taken(sum);
}
