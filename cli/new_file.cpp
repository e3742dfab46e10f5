#include "cli/new_file.hpp"

#include <filesystem>

#include "base/file.hpp"
#include "base/text.hpp"

namespace spark::cli {

Result<> write_new_file(const std::string& file, const std::string& text, unsigned mode) {
  std::error_code error;
  if (std::filesystem::exists(file, error)) {
    return fail(Errc::Refused, "writing " + printable(file) + ": it is there already",
                "name another file, and compare the two");
  }
  const auto path = absolute_path(file);
  return path ? write_file_atomically(*path, text, mode) : fail(path.error());
}

}  // namespace spark::cli
