#include "cli/verbs/verbs.hpp"
#include "fleet/transport/key.hpp"

namespace spark::cli {
namespace {

Result<int> print_key(Context& context) {
  const auto key = fleet::new_key();
  if (!key) return key.take_error();
  context.out << *key << "\n";
  return 0;
}

}  // namespace

void add_fleet(App& app) {
  Verb group = app.group("fleet", "hosts that exchange datasets while staging", "  spark-stage fleet key");
  app.verb_of(group, "key", "print a new key; every host of the fleet needs the same",
              "  spark-stage fleet key > fleet.key    as fleet.key_file of every host, mode 600", print_key);
}

}  // namespace spark::cli
