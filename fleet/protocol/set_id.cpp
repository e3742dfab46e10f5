#include "fleet/protocol/set_id.hpp"

#include "base/text.hpp"

namespace spark::fleet {
namespace {

constexpr std::string_view kNfs = "nfs ", kContent = "content ";
constexpr std::size_t kHashDigits = 32;

char kind_of(const staging::SetOrigin& origin) {
  if (!origin.state.empty()) return 's';
  if (is_of_nfs(origin.source)) return 'n';
  return is_of_content(origin.source) ? 'c' : 'p';
}

}  // namespace

SetNaming::SetNaming(const staging::SetOrigin& origin) : kind_(kind_of(origin)) {
  const std::string& name = origin.state.empty() ? origin.source : origin.state;
  hasher_.add_number(name.size());
  hasher_.add(name);
}

void SetNaming::add(const staging::Entry& entry) {
  if (!staging::is_content(entry)) return;
  ++files_;
  hasher_.add_number(entry.path.view().size());
  hasher_.add(entry.path.view());
  hasher_.add_number(entry.size);
  if (kind_ != 'c') hasher_.add_number(static_cast<std::uint64_t>(entry.mtime_ns));
  if (kind_ == 'n') staging::add(hasher_, staging::identity_of(entry));
}

std::string SetNaming::id() {
  hasher_.add_number(files_);
  return kind_ + staging::to_hex(hasher_.digest());
}

bool is_exchanged(const staging::SetOrigin& origin) {
  return !origin.state.empty() || !origin.source.empty();
}

bool is_of_nfs(std::string_view origin) {
  return origin.starts_with(kNfs);
}

std::string content_origin(std::string_view hash) {
  return std::string(kContent) + std::string(hash);
}

bool is_of_content(std::string_view origin) {
  return origin.starts_with(kContent);
}

bool is_content_hash(std::string_view text) {
  return text.size() == kHashDigits && text.find_first_not_of(kHexDigits) == std::string_view::npos;
}

bool is_set_id(std::string_view text) {
  return !text.empty() && std::string_view("snpc").find(text[0]) != std::string_view::npos &&
         is_content_hash(text.substr(1));
}

}  // namespace spark::fleet
