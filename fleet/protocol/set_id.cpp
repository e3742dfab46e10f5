#include "fleet/protocol/set_id.hpp"

namespace spark::fleet {
namespace {

constexpr std::string_view kNfs = "nfs ";

}  // namespace

SetNaming::SetNaming(const staging::SetOrigin& origin) {
  if (origin.state.empty()) kind_ = is_of_nfs(origin.source) ? 'n' : 'p';
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
  hasher_.add_number(static_cast<std::uint64_t>(entry.mtime_ns));
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

bool is_set_id(std::string_view text) {
  return text.size() == 33 && (text[0] == 's' || text[0] == 'n' || text[0] == 'p') &&
         text.find_first_not_of("0123456789abcdef", 1) == std::string_view::npos;
}

}  // namespace spark::fleet
