// Peers get an adopted folder from a host that has no copy of it.
#include "tests/unit/fleet/adopted/adopted_fixture.hpp"
#include "tests/unit/fleet/serve/host.hpp"

using namespace spark;
using namespace spark::fleet;
using spark::fleet::test::AdoptedFixture;
using spark::fleet::test::FleetHost;

namespace {

class AdoptedPeerTest : public AdoptedFixture {
 protected:
  const std::string key_ = new_key().value();
  std::unique_ptr<FleetHost> first_;
  FleetHost second_{key_, "nqn.b"};

  std::string adopt_there() {
    first_ = std::make_unique<FleetHost>(key_, "nqn.a", std::chrono::seconds(5),
                                         TimeLimits{std::chrono::seconds(5), std::chrono::seconds(30)},
                                         std::vector{adopted_});
    state_dir_ = first_->state_dir();
    adoption_.emplace(adopted_, state_dir_, clock_);
    adopt(*adoption_);
    return adoption_->summary().hash;
  }
  Result<staging::Staged> stage_here() {
    staging::Source source{"set", "", {}};
    source.model = adopted_.model;
    return second_.stage_elsewhere(source, {{"a", first_->address().endpoints}});
  }
  std::optional<Adoption> adoption_;
};

TEST_F(AdoptedPeerTest, APeerCopiesTheFolderAlthoughItsHostHasNoCopy) {
  const std::string hash = adopt_there();
  const auto here = stage_here();
  ASSERT_TRUE(here) << here.error().message();
  EXPECT_EQ(here->report.hash, hash);
  EXPECT_EQ(here->report.bytes_from_peers, here->report.bytes);
  EXPECT_EQ(read_file(here->path / "sub/small").value(), "s");
  EXPECT_TRUE(first_->cache()->list()->empty());
}

TEST_F(AdoptedPeerTest, AModelBehindTheLinksOfACacheHasItsRecordAtThePeer) {
  staging::test::MadeHub hub(folder_ / "hub");
  hub.make("org/tiny", staging::test::HubLayout::Shared);
  adopted_.path = hub.folder();
  adopted_.model = staging::ModelOptions{"org/tiny"};
  const std::string hash = adopt_there();
  const auto here = stage_here();
  ASSERT_TRUE(here) << here.error().message();
  EXPECT_EQ(here->report.hash, hash);
  ASSERT_TRUE(here->model);
  EXPECT_EQ(here->model->record.revision, hub.commit);
  EXPECT_EQ(read_file(here->path / "config.json").value(), hub.files["config.json"]);
}

TEST_F(AdoptedPeerTest, PeersGetARevisionWhoseRefHasMovedOrHasALineEnd) {
  staging::test::MadeHub hub(folder_ / "hub");
  hub.make("org/tiny", staging::test::HubLayout::Shared);
  adopted_.path = hub.folder();
  adopted_.model = staging::ModelOptions{"org/tiny"};
  const auto ref = hub.model("org/tiny") / "refs/main";
  staging::test::write_text(ref, hub.commit + "\n");
  const std::string hash = adopt_there();
  for (const char* text : {"", "dddddddddddddddddddddddddddddddddddddddd"}) {
    if (*text != 0) staging::test::write_text(ref, text);
    if (*text != 0) look(*adoption_);
    const auto here = stage_here();
    ASSERT_TRUE(here) << here.error().message();
    EXPECT_EQ(here->report.hash, hash);
    EXPECT_EQ(read_file(here->model->hub_cache / "models--org--tiny/refs/main").value(), hub.commit);
    ASSERT_TRUE(second_.cache()->evict("set"));
  }
}

// Each ref has the same size, and its time is of no use.
TEST_F(AdoptedPeerTest, APeerWithARevisionGetsTheNextOne) {
  staging::test::MadeHub hub(folder_ / "hub");
  hub.make("org/tiny", staging::test::HubLayout::Shared);
  adopted_.path = hub.folder();
  adopted_.model = staging::ModelOptions{"org/tiny"};
  const std::string earlier = adopt_there();
  ASSERT_TRUE(stage_here());
  const auto snapshot = hub.snapshot("org/tiny");
  hub.commit = std::string(40, 'd');
  using std::filesystem::copy_options;
  std::filesystem::copy(snapshot, hub.snapshot("org/tiny"),
                        copy_options::recursive | copy_options::copy_symlinks);
  staging::test::write_text(hub.model("org/tiny") / "refs/main", hub.commit);
  adopt(*adoption_);
  EXPECT_NE(adoption_->summary().hash, earlier);
  const auto here = stage_here();
  ASSERT_TRUE(here) << here.error().message();
  EXPECT_EQ(here->report.hash, adoption_->summary().hash);
  EXPECT_EQ(read_file(here->model->hub_cache / "models--org--tiny/refs/main").value(), hub.commit);
}

// Between two looks of the host.
TEST_F(AdoptedPeerTest, AFileChangedSinceIsNotSentAndEndsTheOffer) {
  for (const char* file : {"large", "sub/small"}) {
    adopt_there();
    const std::string before = read_file(path_ / file, 64 * kMiB).value();
    write(file, std::string(before.size(), 'X'));
    const auto here = stage_here();
    ASSERT_FALSE(here) << file;
    EXPECT_EQ(here.error().kind, Errc::Unavailable) << here.error().message();
    EXPECT_FALSE(std::filesystem::exists(offer())) << file;
    EXPECT_TRUE(second_.cache()->list()->empty());
    write(file, before);
  }
}

// The list of files is in the memory of the process that serves them.
TEST_F(AdoptedPeerTest, AFileThatChangesWhilePeersReadTheFolderIsNotSentAnyMore) {
  adopt_there();
  const auto listed = read_offer(offer(), definition_of(adopted_));
  const auto offered = offer_of_folder(adopted_, offer(), listed->summary.hash);
  ASSERT_TRUE(offered) << offered.error().message();
  const staging::IoBuffer buffer(kUnitBuffer);
  for (std::uint64_t unit = 0; unit < (*offered)->state().unit_count; ++unit)
    EXPECT_TRUE((*offered)->read(unit, buffer)) << unit;
  EXPECT_FALSE((*offered)->read(1000, buffer)) << "there is no such unit";
  EXPECT_TRUE((*offered)->is_current());
  flip(path_ / "large");
  EXPECT_FALSE((*offered)->read(1, buffer));
  EXPECT_FALSE((*offered)->is_current());
  EXPECT_FALSE((*offered)->read(0, buffer));
  EXPECT_FALSE(std::filesystem::exists(offer()));
}

// As while a new daemon's first look is still to come.
TEST_F(AdoptedPeerTest, AFolderThatTheConfigurationNoLongerAdoptsIsNotOffered) {
  adopt_there();
  PublishedCopies without(first_->cache_path(), state_dir_, {});
  without.look();
  EXPECT_TRUE(without.list().empty());
  AdoptedFolder other = adopted_;
  other.path = folder_ / "elsewhere";
  PublishedCopies changed(first_->cache_path(), state_dir_, {}, {other});
  changed.look();
  EXPECT_TRUE(changed.offered().empty());
  ASSERT_EQ(changed.list().size(), 1u);
  EXPECT_EQ(changed.list()[0].at("withheld"), true) << "a peer may wait for it";
  EXPECT_FALSE(changed.list()[0].as_object().contains("hash"));
  PublishedCopies same(first_->cache_path(), state_dir_, {}, {adopted_});
  same.look();
  EXPECT_EQ(same.list().size(), 1u);
}

// What `status` shows: not what was offered when this host looked at the folder last.
TEST_F(AdoptedPeerTest, TheServerTellsWhatPeersGet) {
  const std::string hash = adopt_there();
  first_->server().look();
  const json::array offered = first_->server().offered();
  ASSERT_EQ(offered.size(), 1u);
  EXPECT_EQ(offered[0].at("name"), "set");
  EXPECT_EQ(offered[0].at("hash").as_string(), hash);
  EXPECT_EQ(offered[0].at("files"), 3);
  write("sub/small", "X");
  ASSERT_FALSE(stage_here());
  EXPECT_TRUE(first_->server().offered().empty()) << "a peer's reading has found the change";
}

}  // namespace
