#include "staging/cache/catalog/damage_mark.hpp"

#include <unistd.h>

#include <cerrno>

#include "base/file.hpp"
#include "base/text.hpp"
#include "staging/manifest/names.hpp"

namespace spark::staging {
namespace {

std::filesystem::path damage_file(const std::filesystem::path& folder, std::uint64_t generation) {
  return folder / companion_name(std::to_string(generation), ".spark-damage");
}

}  // namespace

Result<std::optional<std::string>> damage_mark(const std::filesystem::path& folder,
                                               std::uint64_t generation) {
  auto text = read_file(damage_file(folder, generation));
  if (text) return std::optional(std::move(*text));
  if (text.error().kind == Errc::NotFound) return std::optional<std::string>();
  return text.take_error();
}

Result<> set_damage_mark(const std::filesystem::path& folder, std::uint64_t generation,
                         const std::string& damage) {
  auto written = write_file_atomically(damage_file(folder, generation), damage, 0600);
  return written ? Result<>() : written.take_error();
}

Result<> drop_damage_mark(const std::filesystem::path& folder, std::uint64_t generation) {
  const std::filesystem::path file = damage_file(folder, generation);
  if (::unlink(file.c_str()) == 0 || errno == ENOENT) return {};
  return fail_errno(errno, "deleting " + printable(file.native()));
}

}  // namespace spark::staging
