#include <algorithm>
#include <array>

#include "staging/models/weights.hpp"

namespace spark::staging {
namespace {

// So many elements take so many bytes.
struct Block {
  unsigned elements = 0;  // 0: not known, or no longer in use
  unsigned bytes = 0;
};

// By the number of the type (gguf-py/gguf/constants.py, GGMLQuantizationType and GGML_QUANT_SIZES). Q8_1 (9)
// differs between implementations, and no file has it.
constexpr std::array<Block, 42> kBlocks = {{
    {1, 4},    {1, 2},    {32, 18},   {32, 20},   {},         {},         {32, 22},   {32, 24},  {32, 34},
    {},        {256, 84}, {256, 110}, {256, 144}, {256, 176}, {256, 210}, {256, 292}, {256, 66}, {256, 74},
    {256, 98}, {256, 50}, {32, 18},   {256, 110}, {256, 82},  {256, 136}, {1, 1},     {1, 2},    {1, 4},
    {1, 8},    {1, 8},    {256, 56},  {1, 2},     {},         {},         {},         {256, 54}, {256, 66},
    {},        {},        {},         {32, 17},   {64, 36},   {128, 18},
}};

// Of the metadata's values.
enum ValueType : std::uint32_t { kString = 8, kArray = 9 };
constexpr std::array<Bytes, 13> kValueBytes = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

constexpr int kDeepest = 4;  // arrays in arrays
constexpr std::uint32_t kMostDimensions = 8;
constexpr Bytes kLongestKey = 64 * kKiB;
constexpr Bytes kDefaultAlignment = 32, kLargestAlignmentOfTensors = 64 * kMiB;

// More than any file has.
constexpr Bytes kTooMuch = ~Bytes{0};

Bytes times(Bytes a, Bytes b) {
  Bytes product = 0;
  return __builtin_mul_overflow(a, b, &product) ? kTooMuch : product;
}

Bytes plus(Bytes a, Bytes b) {
  Bytes sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? kTooMuch : sum;
}

// False if the value is of no known type.
bool skip_value(Head& head, std::uint32_t type, int depth = 0) {
  if (type == kString) {
    head.skip(head.u64());
    return true;
  }
  if (type >= kValueBytes.size() || depth > kDeepest) return false;
  if (type != kArray) {
    head.skip(kValueBytes[type]);
    return true;
  }
  const std::uint32_t of = head.u32();
  const std::uint64_t count = head.u64();
  if (of < kValueBytes.size() && kValueBytes[of] > 0) {
    head.skip(times(kValueBytes[of], count));
    return true;
  }
  for (std::uint64_t i = 0; i < count && !head.ended(); ++i)
    if (!skip_value(head, of, depth + 1)) return false;
  return true;
}

struct Metadata {
  std::uint64_t part = 0, parts = 0;
  Bytes alignment = kDefaultAlignment;
};

bool read_metadata(Head& head, std::uint64_t count, Metadata& into) {
  for (std::uint64_t i = 0; i < count && !head.ended(); ++i) {
    const std::uint64_t length = head.u64();
    if (length > kLongestKey) return false;
    const std::string key(head.text(length));
    const std::uint32_t type = head.u32();
    std::uint64_t* const wanted = key == "split.no"            ? &into.part
                                  : key == "split.count"       ? &into.parts
                                  : key == "general.alignment" ? &into.alignment
                                                               : nullptr;
    const bool is_number = type < kValueBytes.size() && kValueBytes[type] > 0;
    if (wanted != nullptr && is_number)
      *wanted = head.number(kValueBytes[type]);
    else if (!skip_value(head, type))
      return false;
  }
  return true;
}

// The end of the tensors' bytes, counted from where they begin.
Bytes end_of_tensors(Head& head, std::uint64_t count) {
  Bytes end = 0;
  for (std::uint64_t i = 0; i < count && !head.ended(); ++i) {
    head.skip(head.u64());  // its name
    const std::uint32_t dimensions = head.u32();
    if (dimensions > kMostDimensions) return kTooMuch;
    Bytes elements = 1;
    for (std::uint32_t d = 0; d < dimensions; ++d) elements = times(elements, head.u64());
    const std::uint32_t type = head.u32();
    const Bytes offset = head.u64();
    const Block block = type < kBlocks.size() ? kBlocks[type] : Block{};
    const Bytes bytes = block.elements == 0 ? 0 : times(elements / block.elements, block.bytes);
    end = std::max(end, plus(offset, bytes));
  }
  return end;
}

Weights look(const FileBytes& file, Head& head) {
  constexpr const char* kNoHeader = "it does not begin with a header of GGUF";
  Weights weights;
  if (head.text(4) != "GGUF") return {kNoHeader};
  const std::uint32_t version = head.u32();
  if (!head.ended() && version != 2 && version != 3) return weights;  // nothing is known of it
  const std::uint64_t tensors = head.u64(), values = head.u64();
  Metadata metadata;
  if (!read_metadata(head, values, metadata)) return {kNoHeader};
  const Bytes alignment = metadata.alignment;
  if (alignment == 0 || alignment > kLargestAlignmentOfTensors) return {kNoHeader};
  const Bytes end = end_of_tensors(head, tensors);
  if (head.ended()) return {"it ends within its header"};
  const Bytes data = (head.at() + alignment - 1) / alignment * alignment;
  const Bytes wanted = end == 0 ? head.at() : plus(data, end);
  if (wanted == kTooMuch) return {"its header describes more than a file can hold"};
  if (wanted > file.size)
    return {"it has " + std::to_string(file.size) + " bytes, and its header describes at least " +
            std::to_string(wanted)};
  if (metadata.parts > 1 && metadata.part < metadata.parts && metadata.parts <= 99'999) {
    weights.part = static_cast<unsigned>(metadata.part) + 1;
    weights.parts = static_cast<unsigned>(metadata.parts);
  }
  return weights;
}

}  // namespace

Result<Weights> look_at_gguf(const FileBytes& file) {
  Head head(file);
  Weights weights = look(file, head);
  if (head.failed()) return fail(Errc::Failed, "its header can't be read");
  return weights;
}

}  // namespace spark::staging
