// What a walk of a model takes along is what a peer's record of it has to cover: one notion of a layout.
#include "staging/models/structure.hpp"

#include "tests/unit/fleet/adopted/adopted_fixture.hpp"

using namespace spark;
using namespace spark::fleet;
using spark::fleet::test::AdoptedFixture;
using staging::test::HubLayout;

namespace {

class NamedFilesTest : public AdoptedFixture {
 protected:
  staging::Model walk(const std::filesystem::path& path, const std::string& name) {
    adopted_.path = path;
    adopted_.model = staging::ModelOptions{name};
    auto now = look_at(adopted_, stop_);
    EXPECT_TRUE(now) << now.error().message();
    return now ? std::move(now->walked) : staging::Model();
  }
  static void expect_named(staging::Model model) {
    auto& entries = model.walked.entries;
    EXPECT_TRUE(staging::names_all_files(model.record, entries));
    staging::Entry more;
    more.path = model.record.entry_point.empty() ? "zz.py" : model.record.entry_point + "/zz.py";
    entries.push_back(more);
    EXPECT_FALSE(staging::names_all_files(model.record, entries)) << "a file that no digest covers";
  }
};

TEST_F(NamedFilesTest, EachLayoutOfTheHubsCache) {
  for (const HubLayout layout : {HubLayout::Old, HubLayout::Shared, HubLayout::WithoutLinks}) {
    const auto folder = folder_ / ("hub" + std::to_string(static_cast<int>(layout)));
    staging::test::MadeHub hub(folder);
    hub.make("org/tiny", layout);
    hub.list_files("org/tiny");
    staging::test::write_text(hub.model("org/tiny") / ".no_exist" / hub.commit / "absent.json", "");
    expect_named(walk(folder, "org/tiny"));
    expect_named(walk(hub.model("org/tiny"), "org/tiny"));
    expect_named(walk(hub.snapshot("org/tiny"), "org/tiny"));
  }
}

TEST_F(NamedFilesTest, APlainFolder) {
  staging::test::write_text(folder_ / "plain/sub/a.safetensors", staging::whole_safetensors());
  staging::test::write_text(folder_ / "plain/config.json", "{}");
  expect_named(walk(folder_ / "plain", "org/tiny"));
}

TEST_F(NamedFilesTest, AModelOfOllama) {
  const std::string layer = "layer", config = "{}";
  const std::string of_layer = staging::test::MadeHub::sha256_of(layer),
                    of_config = staging::test::MadeHub::sha256_of(config);
  const auto folder = folder_ / "ollama";
  staging::test::write_text(folder / "blobs" / ("sha256-" + of_layer), layer);
  staging::test::write_text(folder / "blobs" / ("sha256-" + of_config), config);
  staging::test::write_text(folder / "manifests/registry.ollama.ai/library/tiny/latest",
                            R"({"config":{"digest":"sha256:)" + of_config +
                                R"(","size":2},"layers":[{"digest":"sha256:)" + of_layer +
                                R"(","size":5}]})");
  const staging::Model model = walk(folder, "tiny");
  EXPECT_TRUE(staging::names_all_files(model.record, model.walked.entries));
}

}  // namespace
