#include "daemon/datasets/totals.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "daemon/datasets/task.hpp"
#include "daemon/log.hpp"

namespace spark::datasets {
namespace {

Bytes bytes_of(const json::object& object, std::string_view key) {
  return static_cast<Bytes>(std::max<std::int64_t>(0, get_int(object, key).value_or(0)));
}

void log_eviction(const Task& task, const json::object& evicted) {
  log::info("dataset " + printable(get_string(evicted, "name").value_or("")) + " (" +
            format_bytes(bytes_of(evicted, "bytes")) + ") was evicted to make room for " +
            printable(task.dataset.name));
}

}  // namespace

void count(Totals& totals, const Task& task, const Outcome& ended) {
  if (!ended) {
    ++(ended.error().kind == Errc::Cancelled ? totals.cancelled : totals.failed);
    return;
  }
  if (get_string(*ended, "served_from") == "cache") {
    ++totals.from_cache;
  } else {
    const Bytes taken_over = bytes_of(*ended, "resumed_bytes") + bytes_of(*ended, "unchanged_bytes");
    ++totals.copied;
    totals.copied_bytes += bytes_of(*ended, "bytes") - std::min(bytes_of(*ended, "bytes"), taken_over);
    if (const json::object* from = get_object(*ended, "bytes_from"))
      totals.peer_bytes += bytes_of(*from, "peers");
    totals.copied_seconds += get_double(*ended, "seconds").value_or(0);
  }
  const json::array* evicted = get_array(*ended, "evicted");
  for (std::size_t i = 0; evicted != nullptr && i < evicted->size(); ++i) {
    const json::object& one = (*evicted)[i].as_object();
    log_eviction(task, one);
    ++totals.evicted_for_room;
    totals.evicted_for_room_bytes += bytes_of(one, "bytes");
  }
}

}  // namespace spark::datasets
