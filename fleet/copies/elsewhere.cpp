#include "fleet/copies/elsewhere.hpp"

#include <optional>

#include "fleet/copies/copy_entries.hpp"
#include "fleet/protocol/set_id.hpp"

namespace spark::fleet {
namespace {

// What a commit or a pin names does not change: then no peer is asked. Empty: it is not in the cache.
Result<std::string> hash_of_named(staging::Cache& cache, const staging::Source& source) {
  const bool is_named = source.model && !(source.model->revision.empty() && source.model->expect.empty());
  if (!is_named) return std::string();
  const auto rows = cache.list();
  if (!rows) return rows.take_error();
  for (const staging::DatasetRow& row : *rows) {
    const bool is_good =
        row.name == source.dataset && row.damage.empty() && !row.is_doubtful && !row.is_evicting && row.model;
    if (!is_good || !row.model->record.satisfies(*source.model)) continue;
    if (source.model->revision.empty() || row.model->record.revision == source.model->revision)
      return row.hash;
  }
  return std::string();
}

}  // namespace

Result<std::vector<std::string>> find_elsewhere(staging::Source& source, staging::Cache& cache,
                                                const PeerExchange& exchange) {
  const WantedCopy wanted{source.dataset, source.model};
  const auto choose = [wanted, &exchange] { return choose_copy(wanted, ask_for_copies(exchange.peers())); };
  const auto named = hash_of_named(cache, source);
  if (!named) return named.take_error();
  std::optional<ChosenCopy> chosen;
  if (named->empty()) {
    auto found = choose();
    if (!found) return found.take_error();
    chosen = std::move(*found);
  }
  const std::string hash = chosen ? chosen->hash : *named;
  source.elsewhere.emplace();
  source.elsewhere->hash = hash;
  source.elsewhere->walk = [=, &exchange]() -> Result<staging::Model> {
    const auto from = chosen ? Result<ChosenCopy>(*chosen) : choose();
    if (!from) return from.take_error();
    if (from->hash != hash)
      return fail(Errc::Mismatch, "peers have another copy than the one here, which can't be served",
                  "evict that one");
    return get_entries(*from, wanted, exchange.peers(), exchange.boards());
  };
  source.origin = content_origin(hash);
  return chosen ? chosen->peers : std::vector<std::string>();
}

}  // namespace spark::fleet
