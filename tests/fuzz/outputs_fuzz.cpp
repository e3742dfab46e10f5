// What callers ask to be sent, what the state folder has of it, and what frameworks leave in a job's folder:
// the request is within bounds and is the same after it was recorded, and a checkpoint is complete or not,
// whatever its files hold.
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "base/text.hpp"
#include "daemon/outputs/stage_out_request.hpp"
#include "staging/outputs/checkpoints.hpp"

namespace {

namespace fs = std::filesystem;
namespace outputs = spark::outputs;
using spark::staging::Completeness;

void require(bool holds) {
  if (!holds) std::abort();
}

void is_the_same_after_it_was_recorded(const outputs::StageOutRequest& request) {
  const auto read = outputs::request_from_json(outputs::to_json(request));
  require(read && read->is_same(request) && read->waits == request.waits);
}

void read_request(std::string_view text) {
  const auto object = spark::parse_json_object(std::string(text));
  if (!object) return;
  if (const auto recorded = outputs::request_from_json(*object)) is_the_same_after_it_was_recorded(*recorded);
  auto asked = outputs::request_of(*object);
  if (!asked) return;
  require(asked->source.starts_with('/') && !asked->volume.empty() && !fs::path(asked->path).is_absolute());
  for (const fs::path& part : fs::path(asked->path)) require(part != ".." && part != ".");
  require(!fs::path(asked->path).filename().native().starts_with('.'));
  asked->id = "1";
  is_the_same_after_it_was_recorded(*asked);
}

// A folder with a checkpoint of each layout, in which the input is what tells about the others.
class JobFolder {
 public:
  JobFolder() : folder_("/tmp/spark-outputs-fuzz-" + std::to_string(::getpid())) {
    fs::create_directories(folder_ / "checkpoint-1");
    for (const char* name : {"__0_0.distcp", "trainer_state.json", "a.safetensors"})
      std::ofstream(folder_ / "checkpoint-1" / name) << "x";
  }
  ~JobFolder() { fs::remove_all(folder_); }

  void look(std::string_view content) {
    for (const char* name : {"checkpoint-1/.metadata", "checkpoint-1/model.safetensors.index.json", "latest"})
      std::ofstream(folder_ / name, std::ios::binary) << content;
    const auto now = std::chrono::system_clock::now();
    for (const auto rule :
         {Completeness::Rule::Dcp, Completeness::Rule::HuggingFace, Completeness::Rule::DeepSpeed}) {
      const auto found = spark::staging::list_checkpoints(folder_, {rule, ""}, now, spark::Duration(3'000));
      require(found && found->size() == 1 && found->front().name == "checkpoint-1");
      require(!found->front().incomplete.empty());  // all of it has just been written
      require(spark::printable(found->front().incomplete) == found->front().incomplete);
    }
  }

 private:
  fs::path folder_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static JobFolder folder;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  read_request(text);
  folder.look(text);
  return 0;
}
