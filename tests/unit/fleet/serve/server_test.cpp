#include "fleet/serve/server.hpp"

#include <gtest/gtest.h>
#include <sys/xattr.h>

#include "fleet/protocol/set_id.hpp"
#include "staging/cache/catalog/catalog.hpp"
#include "staging/cache/catalog/damage.hpp"
#include "staging/manifest/manifest_reader.hpp"
#include "tests/unit/fleet/serve/host.hpp"

using namespace spark;
using namespace spark::fleet;
using spark::fleet::test::FleetHost;
using spark::staging::Source;
using spark::test::TempFolder;
using namespace std::chrono_literals;

namespace {

constexpr Bytes kLarge = 20 * kMiB;
const std::string kState = "[\"superblock 1\",\"\",0]";

class ServerTest : public testing::Test {
 protected:
  const std::string key_ = new_key().value();
  TempFolder folder_;
  FleetHost first_{key_, "nqn.first"}, second_{key_, "nqn.second"};
  Source source_{"set", folder_ / "source", {}};

  ServerTest() {
    std::filesystem::create_directories(source_.path / "sub");
    write("large", std::string(kLarge, 'l'));
    for (int i = 0; i < 20; ++i) write("sub/" + std::to_string(i), std::string(100 + i, 's'));
    source_.state = "superblock 1";
    source_.is_still_so = [] { return Result<>{}; };
  }
  void write(const std::string& name, const std::string& text) {
    ASSERT_TRUE(write_file_atomically(source_.path / name, text));
  }
  // As the first host answers another one.
  SetState state_of(const std::string& set, NodeId asking) {
    Peer peer(first_.address(), Security::make(key_, "nqn.client").value());
    const auto text = peer.get_text({PeerRequest::Kind::Set, set, 0, asking}, kMiB, {60s, 60s});
    return parse_set_state(text.value(), 1000).value();
  }
};

TEST_F(ServerTest, ALateHostNeitherReadsNorWalksTheSource) {
  const auto whole = first_.stage(source_, {});
  ASSERT_TRUE(whole) << whole.error().message();
  const auto exchange = second_.exchange({first_.address()});
  exchange->begin({kState, ""});
  bool has_walked = false;
  const auto walked = exchange->walk([&]() -> Result<staging::Walked> {
    has_walked = true;
    return fail(Errc::Failed, "not here");
  });
  ASSERT_TRUE(walked) << walked.error().message();
  EXPECT_FALSE(has_walked);
  EXPECT_EQ(walked->entries.size(), 23u);
  const auto later = second_.stage(source_, {first_.address()});
  ASSERT_TRUE(later) << later.error().message();
  EXPECT_EQ(later->report.bytes_from_peers, whole->report.bytes);
  EXPECT_EQ(later->report.hash, whole->report.hash);
}

TEST_F(ServerTest, NothingIsTakenFromACopyOfAnotherState) {
  ASSERT_TRUE(first_.stage(source_, {}));
  source_.state = "superblock 2";
  const auto other = second_.stage(source_, {first_.address()});
  ASSERT_TRUE(other) << other.error().message();
  EXPECT_EQ(other->report.bytes_from_peers, 0u);
}

TEST_F(ServerTest, ADamagedCopyIsNotOffered) {
  const auto whole = first_.stage(source_, {});
  ASSERT_TRUE(whole);
  const auto asked = second_.exchange({first_.address()});
  ASSERT_TRUE(second_.stage(source_, {first_.address()}));
  ASSERT_TRUE(second_.cache()->evict("set"));
  auto catalog = staging::Catalog::open(first_.boards().parent_path()).value();
  const auto damaged = [](staging::Damage& damage) {
    damage.found[1] = "large differs";
    return true;
  };
  ASSERT_TRUE(staging::DamageRecords(first_.cache_path() / "data", *catalog).change("set", damaged));
  first_.server().look();
  const auto later = second_.stage(source_, {first_.address()});
  ASSERT_TRUE(later) << later.error().message();
  EXPECT_EQ(later->report.bytes_from_peers, 0u);
}

TEST_F(ServerTest, AFileWithAttributesIsReadFromTheSource) {
  const auto path = source_.path / "sub/3";
  if (::setxattr(path.c_str(), "user.kept", "x", 1, 0) != 0)
    GTEST_SKIP() << "the file system of temporary files has no user attributes";
  ASSERT_TRUE(first_.stage(source_, {}));
  const auto later = second_.stage(source_, {first_.address()});
  ASSERT_TRUE(later) << later.error().message();
  char value[2];
  EXPECT_EQ(::getxattr((later->path / "sub/3").c_str(), "user.kept", value, sizeof value), 1);
  EXPECT_EQ(later->report.bytes_from_peers, later->report.bytes - 103);
}

TEST_F(ServerTest, AHostWithoutItsVolumeGetsEverythingFromAPublishedCopy) {
  const auto whole = first_.stage(source_, {});
  ASSERT_TRUE(whole);
  source_.is_away = true;
  source_.path = folder_ / "gone";
  const auto away = second_.stage(source_, {first_.address()});
  ASSERT_TRUE(away) << away.error().message();
  EXPECT_EQ(away->report.hash, whole->report.hash);
  EXPECT_EQ(away->report.bytes_from_peers, whole->report.bytes);
}

// A long list of files takes seconds to load; these cannot be loaded at all.
TEST_F(ServerTest, TheStateOfACopyInProgressNeedsNoListOfItsFiles) {
  const std::string set = "s" + std::string(32, 'a');
  Presence worker(Board::create(first_.boards(), set, "/x", {5, 3, 4}).value());
  worker.board().set_unit(2, UnitState::HasPiece);
  worker.board().set_reads(SetState::Reads::Slowly);
  const SetState state = state_of(set, 7);
  EXPECT_EQ(state.kind, SetState::Kind::Staging);
  EXPECT_EQ(state.reads, SetState::Reads::Slowly);
  ASSERT_EQ(state.units.size(), 5u);
  EXPECT_EQ(state.units[2], UnitState::HasPiece);
  // A host is a member for two seconds after its question, which may be over on a busy computer.
  for (int i = 0; i < 100 && worker.board().members().empty(); ++i) state_of(set, 7);
  EXPECT_EQ(worker.board().members(), std::vector<NodeId>{7});
}

TEST_F(ServerTest, TheStateOfAPublishedCopyNeedsNoListOfItsFiles) {
  const auto whole = first_.stage(source_, {});
  ASSERT_TRUE(whole) << whole.error().message();
  SetNaming naming({kState, ""});
  auto manifest = staging::ManifestReader::open(first_.manifest(whole->generation)).value();
  while (const auto entry = manifest.next()) naming.add(*entry);
  first_.server().look();
  std::filesystem::remove(first_.manifest(whole->generation));
  const SetState state = state_of(naming.id(), 7);
  EXPECT_EQ(state.kind, SetState::Kind::Published);
  EXPECT_EQ(state.unit_count, 4u) << "three pieces and a pack";
  EXPECT_EQ(state.hash, whole->report.hash);
}

TEST_F(ServerTest, ACopyKnownToPeersBeforeItsPublicationReportsItsHash) {
  auto sharing = first_.exchange({});
  staging::CopyOptions options;
  options.exchange = sharing.get();
  ASSERT_TRUE(first_.cache()->stage(source_, options, {}, StopFlag(false)));
  sharing->published();
  ASSERT_TRUE(second_.stage(source_, {first_.address()}));  // from then on the server has the copy's board
                                                            // open
  ASSERT_TRUE(second_.cache()->evict("set"));
  sharing.reset();
  first_.server().look();
  source_.is_away = true;
  const auto away = second_.stage(source_, {first_.address()});
  ASSERT_TRUE(away) << away.error().message();
}

TEST_F(ServerTest, ServingIsLimitedWhileAJobHoldsALease) {
  const auto whole = first_.stage(source_, {});
  ASSERT_TRUE(whole);
  auto catalog = staging::Catalog::open(first_.boards().parent_path()).value();
  staging::Lease lease;
  lease.id = "l";
  lease.dataset = "set";
  lease.generation = whole->generation;
  lease.is_soft = true;
  lease.expires = SystemClock().wall() + std::chrono::hours(1);
  ASSERT_TRUE(catalog->add_lease(lease));
  first_.server().look();
  EXPECT_FALSE(first_.server().is_limited()) << "a prefetched copy's is no job";
  lease.is_soft = false;
  ASSERT_TRUE(catalog->add_lease(lease));
  first_.server().look();
  EXPECT_TRUE(first_.server().is_limited());
  ASSERT_TRUE(catalog->remove_lease("l"));
  first_.server().look();
  EXPECT_FALSE(first_.server().is_limited());
}

TEST_F(ServerTest, HostsThatTakeNoBytesKeepNoBuffer) {
  FleetHost host(key_, "nqn.server", 5s, {1h, 200ms});
  ASSERT_TRUE(host.stage(source_, {}));
  const auto exchange = second_.exchange({host.address()});
  exchange->begin({kState, ""});
  SetNaming naming({kState, ""});
  const auto walked = exchange->walk({}).value();
  for (const staging::Entry& entry : walked.entries) naming.add(entry);
  const PeerRequest request{PeerRequest::Kind::Unit, naming.id(), 0, 0};
  const auto security = Security::make(key_, "nqn.client").value();
  std::vector<std::unique_ptr<Channel>> stuck;
  for (int i = 0; i < 8; ++i) {  // as many as there are buffers
    auto& channel = *stuck.emplace_back(Channel::connect(security, host.address().endpoints[0], 10s).value());
    ASSERT_TRUE(channel.write_all(request_text(to_target(request))) && channel.flush());
    char byte = 0;
    ASSERT_TRUE(channel.read_all({&byte, 1}));  // its answer has begun, so it has a buffer
  }
  Peer peer(host.address(), security);
  std::string unit(8 * kMiB, '\0');
  const auto answer = peer.get(request, unit, {60s, 60s});
  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_EQ(answer->status, 200u);
}

TEST_F(ServerTest, AHostWithoutItsVolumeIsUnavailableIfNoPeerHasTheDataset) {
  source_.is_away = true;
  const auto away = second_.stage(source_, {first_.address()});
  ASSERT_FALSE(away);
  EXPECT_EQ(away.error().kind, Errc::Unavailable);
}

}  // namespace
