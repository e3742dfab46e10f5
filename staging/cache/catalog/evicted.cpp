#include "staging/cache/catalog/evicted.hpp"

#include "staging/cache/catalog/catalog_private.hpp"

namespace spark::staging {

Result<> EvictedRecords::note(const std::string& dataset, std::uint64_t generation) {
  Catalog::Database& database = *catalog_.database_;
  return change(database.get(), database.writing,
                "INSERT INTO facts VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = ?2 WHERE "
                "CAST(value AS INTEGER) < CAST(?2 AS INTEGER)",
                evicted_fact(dataset), std::to_string(generation));
}

Result<std::uint64_t> EvictedRecords::last_of(const std::string& dataset) const {
  Catalog::Database& database = *catalog_.database_;
  Statement statement(database.get(), "SELECT CAST(value AS INTEGER) FROM facts WHERE name = ?");
  const int code = statement.bind(evicted_fact(dataset)).step();
  if (code == SQLITE_ROW) return statement.count(0);
  if (code != SQLITE_DONE) return sqlite_error(database.get(), database.reading);
  return std::uint64_t{0};
}

}  // namespace spark::staging
