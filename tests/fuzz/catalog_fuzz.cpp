// A catalog file of any content: never a crash, and every answer is an error or what a catalog can hold.
#include <stdlib.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "staging/cache/catalog/catalog.hpp"
#include "staging/cache/catalog/damage.hpp"

using namespace spark;
using namespace spark::staging;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

// Of this process, in memory where there is such a place.
const std::filesystem::path& folder() {
  static const std::filesystem::path made = [] {
    std::string name =
        std::filesystem::exists("/dev/shm") ? "/dev/shm/catalog-fuzz-XXXXXX" : "/tmp/catalog-fuzz-XXXXXX";
    require(::mkdtemp(name.data()) != nullptr);
    std::atexit([] { std::filesystem::remove_all(folder()); });
    return std::filesystem::path(name);
  }();
  return made;
}

void put_file(const std::uint8_t* data, std::size_t size) {
  for (const char* rest : {"catalog.sqlite-wal", "catalog.sqlite-shm"})
    std::filesystem::remove(folder() / rest);
  std::ofstream file(folder() / "catalog.sqlite", std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
}

// What is written has to be there afterwards, or not to be written.
void check_writing(Catalog& catalog) {
  GenerationRow row;
  row.dataset = "n\xff";
  row.generation = 3;
  if (!catalog.exclusively([&] { return catalog.put(row); })) return;
  const auto rows = catalog.generations();
  if (!rows) return;
  int found = 0;
  for (const GenerationRow& one : *rows) found += one.dataset == row.dataset && one.generation == 3 ? 1 : 0;
  require(found >= 1);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  put_file(data, size);
  const auto opened = Catalog::open(folder());
  if (!opened) return 0;
  Catalog& catalog = **opened;
  static_cast<void>(catalog.cache_id());
  if (const auto rows = catalog.generations()) {
    for (const GenerationRow& row : *rows) {
      static_cast<void>(catalog.touch(row.dataset, row.generation, row.last_used));
      static_cast<void>(catalog.set_allocated(row.dataset, row.generation, row.bytes));
      static_cast<void>(catalog.set_scrubbed(row.dataset, row.generation, row.last_used));
      static_cast<void>(DamageRecords(folder() / "data", catalog).of(row.dataset));
      static_cast<void>(catalog.begin_eviction({row}, row.staged_at));
    }
  }
  if (const auto leases = catalog.leases()) {
    for (const Lease& lease : *leases) {
      static_cast<void>(is_live(lease, WallTime{}));
      static_cast<void>(catalog.add_lease(lease));
    }
  }
  if (const auto reservations = catalog.reservations()) {
    for (const Reservation& reservation : *reservations) static_cast<void>(catalog.reserve(reservation));
  }
  static_cast<void>(catalog.next_generation("a"));
  check_writing(catalog);
  return 0;
}
