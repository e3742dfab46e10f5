#include "fleet/protocol/set_id.hpp"

namespace spark::fleet {

void SetNaming::add(const staging::Entry& entry) {
  if (!staging::is_content(entry)) return;
  ++files_;
  hasher_.add_number(entry.path.view().size());
  hasher_.add(entry.path.view());
  hasher_.add_number(entry.size);
  hasher_.add_number(static_cast<std::uint64_t>(entry.mtime_ns));
  if (kind_ == SetKind::Plain) return;
  hasher_.add_number(static_cast<std::uint64_t>(entry.ctime_ns));
  hasher_.add_number(entry.inode);
}

std::string SetNaming::id() {
  hasher_.add_number(files_);
  return (kind_ == SetKind::Exact ? "x" : "p") + staging::to_hex(hasher_.digest());
}

bool is_set_id(std::string_view text) {
  return text.size() == 33 && (text[0] == 'x' || text[0] == 'p') &&
         text.find_first_not_of("0123456789abcdef", 1) == std::string_view::npos;
}

}  // namespace spark::fleet
