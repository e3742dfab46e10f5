#include <sys/stat.h>

#include <filesystem>
#include <memory>

#include "cli/new_file.hpp"
#include "cli/verbs/verbs.hpp"
#include "fleet/transport/key.hpp"

namespace spark::cli {
namespace {

Result<int> make_key(Context& context, const std::string& file) {
  const auto key = fleet::new_key();
  if (!key) return key.take_error();
  if (file.empty()) {
    context.out << *key << "\n";
    return 0;
  }
  const auto folder = std::filesystem::path(file).parent_path();
  if (!folder.empty()) ::mkdir(folder.c_str(), 0700);  // a failure is that of the file
  if (auto written = write_new_file(file, *key + "\n", 0600); !written) return written.take_error();
  return 0;
}

}  // namespace

void add_fleet(App& app) {
  const auto file = std::make_shared<std::string>();
  Verb group = app.group("fleet", "hosts that exchange datasets while staging", "  spark-stage fleet key");
  Verb key = app.verb_of(group, "key", "make a new key; every host of the fleet needs the same",
                         "  sudo spark-stage fleet key --output /etc/spark-stage/keys/fleet\n"
                         "  spark-stage fleet key    prints it",
                         [file](Context& context) { return make_key(context, *file); });
  key.option("--output", "FILE", *file, "write it to a new file that only its owner can read");
}

}  // namespace spark::cli
