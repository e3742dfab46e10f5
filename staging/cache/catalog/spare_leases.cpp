#include "staging/cache/catalog/spare_leases.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "base/file.hpp"
#include "base/text.hpp"
#include "staging/files/source_trouble.hpp"
#include "staging/leases/lease_json.hpp"
#include "staging/manifest/names.hpp"

namespace spark::staging {

std::filesystem::path SpareLeases::file(const std::string& id) const {
  return folder_ / (folder_name(id) + ".json");
}

Result<> SpareLeases::add(const Lease& lease) const {
  if (::mkdir(folder_.c_str(), 0700) != 0 && errno != EEXIST)
    return fail_errno(errno, "making folder " + printable(folder_.native()));
  return write_file_atomically(file(lease.id), json::serialize(to_json(lease)), 0600);
}

Result<> SpareLeases::remove(const std::string& id) const {
  const std::filesystem::path path = file(id);
  if (::unlink(path.c_str()) == 0 || errno == ENOENT || errno == ENOTDIR) return {};
  return fail_errno(errno, "deleting " + printable(path.native()));
}

Result<SpareLeases::Found> SpareLeases::all() const {
  Found found;
  std::error_code error;
  for (const std::filesystem::path& file : list_folder(folder_, error)) {
    if (file.extension() != ".json") continue;  // a worker was killed while it wrote it
    const auto text = read_file(file);
    if (!text && text.error().kind == Errc::NotFound) continue;
    if (!text && !is_medium_error(text.error().number)) return text.take_error();
    const auto lease = text ? parse_json_object(*text) : fail(text.error());
    if (lease) found.leases.push_back(lease_from_json(*lease));
    if (!lease) found.lost[file] = lease.error().message();
  }
  if (error && error != std::errc::no_such_file_or_directory)
    return fail_errno(error.value(), "reading folder " + printable(folder_.native()));
  return found;
}

}  // namespace spark::staging
