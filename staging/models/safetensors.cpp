#include <algorithm>

#include "base/json.hpp"
#include "staging/models/weights.hpp"

namespace spark::staging {
namespace {

// The format's own limit. Above ours the header is not read: the largest in use are a few MB.
constexpr Bytes kLargestHeader = 100'000'000;
constexpr Bytes kLargestReadHeader = 32 * kMiB;

// The end of the tensors' bytes, counted from the end of the header. No value if an entry is not a tensor's.
std::optional<Bytes> end_of_tensors(const json::object& header) {
  Bytes end = 0;
  for (const auto& member : header) {
    if (member.key() == "__metadata__") continue;
    const auto* tensor = member.value().if_object();
    const auto* offsets = tensor == nullptr ? nullptr : get_array(*tensor, "data_offsets");
    if (offsets == nullptr || offsets->size() != 2) return std::nullopt;
    boost::system::error_code error;
    const auto last = (*offsets)[1].to_number<Bytes>(error);
    if (error) return std::nullopt;
    end = std::max(end, last);
  }
  return end;
}

std::string fault_of(const FileBytes& file, Head& head) {
  const std::uint64_t length = head.u64();
  if (head.ended() || length > kLargestHeader || length > file.size - head.at())
    return "it does not begin with a header of safetensors";
  if (length > kLargestReadHeader) return {};
  const Bytes data = head.at() + length;
  const auto header = parse_json_object(head.text(length));
  if (head.failed()) return {};
  const auto end = header ? end_of_tensors(*header) : std::nullopt;
  if (!end) return "its header is not one of safetensors";
  if (*end == file.size - data) return {};
  return "it has " + std::to_string(file.size - data) + " bytes of tensors, and its header describes " +
         std::to_string(*end);
}

}  // namespace

Result<Weights> look_at_safetensors(const FileBytes& file) {
  Head head(file);
  Weights weights;
  weights.fault = fault_of(file, head);
  if (head.failed()) return fail(Errc::Failed, "its header can't be read");
  return weights;
}

}  // namespace spark::staging
