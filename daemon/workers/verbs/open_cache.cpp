#include "daemon/workers/verbs/open_cache.hpp"

#include <sys/stat.h>
#include <sys/statvfs.h>

#include <cerrno>

#include "base/text.hpp"
#include "daemon/mounts/served_copies.hpp"
#include "daemon/workers/wire.hpp"
#include "staging/cache/catalog/reserve.hpp"
#include "staging/cache/folder/cache_folder.hpp"

namespace spark::workers {
namespace {

const SystemClock kClock;

struct Amounts {
  Bytes bytes = 0;
  std::uint64_t inodes = 0;
};

// Converts percentages to bytes and inodes of the cache's file system.
Result<Amounts> resolve(const config::Amount& amount, const std::filesystem::path& path) {
  if (amount.percent <= 0) return Amounts{amount.bytes, 0};
  struct statvfs space {};
  if (::statvfs(path.c_str(), &space) != 0)
    return fail_errno(errno, "asking " + printable(path.native()) + " for its size");
  const auto part = [&](double whole) { return static_cast<std::uint64_t>(whole * amount.percent / 100); };
  return Amounts{part(static_cast<double>(space.f_blocks) * static_cast<double>(space.f_frsize)),
                 part(static_cast<double>(space.f_files))};
}

Result<> serve(const json::object& request, const staging::CacheFolder& folder, OpenCache& open) {
  const auto settings = cache_settings_from_json(*get_object(request, "cache"));
  ::mkdir(folder.trash().c_str(), 0700);  // deleted by hand; its lock is taken before the cache is opened
  open.served = mounts::serve_read_only(folder.data(), settings.options, folder.trash());
  auto host = mounts::see_writable(folder.data());
  if (!host) return host.take_error();
  open.host = std::move(*host);
  return {};
}

}  // namespace

Result<staging::CacheConfig> cache_config_of(const json::object& request) {
  const json::object* object = get_object(request, "cache");
  if (object == nullptr) return fail(Errc::Invalid, "cache worker: no cache in the request");
  const auto settings = cache_settings_from_json(*object);
  std::error_code error;
  std::filesystem::create_directories(settings.path, error);
  if (error)
    return fail(Errc::Failed, "making " + printable(settings.path.native()) + ": " + error.message());
  const auto capacity = resolve(settings.capacity, settings.path);
  const auto keep_free = resolve(settings.keep_free, settings.path);
  if (!capacity) return capacity.take_error();
  if (!keep_free) return keep_free.take_error();
  staging::CacheConfig config;
  config.path = settings.path;
  config.state_dir = get_text(*object, "state_dir");
  config.capacity = capacity->bytes;
  config.capacity_inodes = capacity->inodes;
  config.keep_free = keep_free->bytes;
  config.keep_free_inodes = keep_free->inodes;
  return config;
}

namespace {

Result<OpenCache> open_as(const json::object& request, staging::IfMissing if_missing) {
  auto config = cache_config_of(request);
  if (!config) return config.take_error();
  config->if_missing = if_missing;
  OpenCache open;
  const staging::CacheFolder folder(config->path);
  std::error_code error;
  const bool is_new = !std::filesystem::is_directory(folder.data(), error);  // opening it creates the folder
  if (auto served = is_new ? Result<>() : serve(request, folder, open); !served) return served.take_error();
  config->served_read_only = open.served.has_value();
  auto cache = staging::Cache::open(*config, kClock);
  if (!cache) return cache.take_error();
  if (auto served = is_new ? serve(request, folder, open) : Result<>(); !served) return served.take_error();
  open.cache = std::move(*cache);
  return open;
}

// Once the daemon has seen the catalog, a new one would not know its leases.
staging::IfMissing if_missing(const json::object& request) {
  return get_bool(request, "knows_catalog").value_or(false) ? staging::IfMissing::Fail
                                                            : staging::IfMissing::Make;
}

}  // namespace

Result<OpenCache> open_cache(const json::object& request) {
  return open_as(request, staging::IfMissing::Fail);
}

Result<OpenCache> open_cache_to_stage(const json::object& request) {
  auto open = open_as(request, if_missing(request));
  if (const json::object* cache = get_object(request, "cache"); open && cache != nullptr)
    for (const char* folder : {"state_dir", "path"}) staging::make_reserve(get_text(*cache, folder));
  return open;
}

Result<OpenCache> open_cache_to_recover(const json::object& request) {
  return open_as(request, if_missing(request));
}

}  // namespace spark::workers
