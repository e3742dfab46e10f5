// What a peer says of a copy gets the checks of an entry of this host.
#include "fleet/copies/copy_entries.hpp"

#include <gtest/gtest.h>

#include "tests/unit/fleet/fetch/fake_host.hpp"
#include "tests/unit/fleet/serve/host.hpp"

using namespace spark;
using namespace spark::fleet;
using spark::fleet::test::answering;
using spark::fleet::test::FakeHost;
using staging::Entry;
using staging::EntryType;

namespace {

Entry entry(const char* path, EntryType type = EntryType::File) {
  Entry made;
  made.path = path;
  made.type = type;
  made.mode = 0644;
  return made;
}

class CopyEntriesTest : public testing::Test {
 protected:
  const std::string key_ = new_key().value();
  const spark::test::TempFolder folder_;
  WantedCopy wanted_{"set"};
  std::string record_;                  // of the model
  std::optional<std::string> claimed_;  // the copy's hash, if it is not that of the entries

  // Of a host that sends them for a copy with the right hash, unless another one is claimed.
  Result<staging::Model> get(std::vector<Entry> entries) {
    staging::Manifest manifest;
    manifest.model = record_;
    manifest.entries.push_back(entry("", EntryType::Folder));
    for (Entry& one : entries) manifest.entries.push_back(std::move(one));
    EXPECT_TRUE(staging::write_manifest(folder_ / "entries", manifest));
    const std::string list = read_file(folder_ / "entries").value();
    FakeHost fake(key_, answering([&](const PeerRequest&) { return list; }));
    std::vector<std::unique_ptr<Peer>> peers;
    peers.push_back(std::make_unique<Peer>(fake.address(), Security::make(key_, "nqn.host").value()));
    const ChosenCopy chosen{claimed_.value_or(staging::summary_of(manifest.entries).hash), {"fake"}};
    auto got = get_entries(chosen, wanted_, peers, folder_ / "boards");
    peers.clear();
    return got;
  }
  Errc why(std::vector<Entry> entries) {
    const auto got = get(std::move(entries));
    EXPECT_FALSE(got);
    return got ? Errc::Failed : got.error().kind;
  }
  std::string record_of(const staging::ModelRecord& record) { return staging::to_text(record); }
};

TEST_F(CopyEntriesTest, EntriesAreTakenWithTheirHashesAndWithoutHoles) {
  Entry file = entry("a");
  file.size = 5 * kMiB;
  file.hash = {1, 2};
  const auto got = get({file});
  ASSERT_TRUE(got) << got.error().message();
  ASSERT_EQ(got->walked.entries.size(), 2u);
  EXPECT_EQ(got->walked.entries[1].hash, file.hash);
  EXPECT_EQ(got->walked.entries[1].allocated, file.size);
}

TEST_F(CopyEntriesTest, AListOfAnotherCopyIsNotTaken) {
  claimed_ = std::string(32, 'a');
  EXPECT_EQ(why({entry("a")}), Errc::Mismatch);
}

TEST_F(CopyEntriesTest, AListThatIsNoTreeOrHasAnImpossibleSizeIsNotTaken) {
  EXPECT_EQ(why({entry("b/c")}), Errc::Mismatch);
  Entry large = entry("a");
  large.size = 65 * kTiB;
  EXPECT_EQ(why({large}), Errc::Mismatch);
}

TEST_F(CopyEntriesTest, WhatHostsDoNotExchangeIsRefused) {
  Entry setuid = entry("a");
  setuid.mode = 04755;
  EXPECT_EQ(why({setuid}), Errc::Refused);
  Entry attributes = entry("a");
  attributes.lost_attributes = true;
  EXPECT_EQ(why({attributes}), Errc::Refused);
}

TEST_F(CopyEntriesTest, SymlinksThatLeadOutAreCountedAndNamedInAWarning) {
  Entry link = entry("a", EntryType::Symlink);
  link.target = "/etc/passwd";
  const auto got = get({link});
  ASSERT_TRUE(got) << got.error().message();
  EXPECT_EQ(got->walked.outside_links, 1u);
  EXPECT_EQ(got->walked.warnings.size(), 1u);
}

TEST_F(CopyEntriesTest, AModelHasARecordOfItselfAndNoSymlinks) {
  wanted_.model = staging::ModelOptions{"org/tiny"};
  EXPECT_EQ(why({entry("a")}), Errc::Mismatch) << "no record";
  staging::ModelRecord record;
  record.name = "org/tiny";
  record.check = staging::ModelCheck::Published;
  record.sha256 = 7;
  record.digests = {{"a", 0, std::string(64, 'a'), "x"}, {"b", 0, "", ""}};
  record_ = record_of(record);
  const auto got = get({entry("a"), entry("b")});
  ASSERT_TRUE(got) << got.error().message();
  EXPECT_EQ(got->record.sha256, 1u) << "counted here";
  EXPECT_EQ(got->record.none, 1u);
  Entry link = entry("a", EntryType::Symlink);
  link.target = "b";
  EXPECT_EQ(why({link}), Errc::Refused);
  record.digests[0].hex = "abc";
  record_ = record_of(record);
  EXPECT_EQ(why({entry("a"), entry("b")}), Errc::Mismatch) << "no digest";
  record.digests = {{"a", 0, "", ""}};
  record.entry_point = "a";
  record_ = record_of(record);
  EXPECT_EQ(why({entry("a")}), Errc::Mismatch) << "jobs would get a file";
}

// A pin would hold whatever is in a file that the record leaves out.
TEST_F(CopyEntriesTest, ARecordThatDoesNotNameJustTheModelsFilesIsNotTaken) {
  wanted_.model = staging::ModelOptions{"org/tiny"};
  staging::ModelRecord record;
  record.name = "org/tiny";
  record.check = staging::ModelCheck::Published;
  record_ = record_of(record);
  EXPECT_EQ(why({entry("a")}), Errc::Mismatch) << "no file";
  EXPECT_EQ(why({}), Errc::Mismatch) << "an empty model";
  record.digests = {{"a", 0, "", ""}};
  record_ = record_of(record);
  EXPECT_TRUE(get({entry("a")}));
  EXPECT_EQ(why({entry("a"), entry("more.py")}), Errc::Mismatch);
  record.digests = {{"a", 0, "", ""}, {"b", 0, "", ""}};
  record_ = record_of(record);
  EXPECT_EQ(why({entry("a")}), Errc::Mismatch) << "one that is not there";
  record.digests = {{"a\nb", 0, "", ""}};
  record_ = record_of(record);
  EXPECT_EQ(why({entry("a\nb")}), Errc::Mismatch) << "the pin of two files";
  record.entry_point = "a";
  record.digests = {{"aXb", 0, "", ""}};
  record_ = record_of(record);
  EXPECT_EQ(why({entry("a", EntryType::Folder), entry("aXb")}), Errc::Mismatch) << "the pin of a/b";
}

TEST_F(CopyEntriesTest, BesideTheFilesOfAModelIsWhatItsCacheSaysOfItAndNothingElse) {
  wanted_.model = staging::ModelOptions{"org/tiny"};
  const std::string commit(40, 'c'), hub = "models--org--tiny", snapshot = hub + "/snapshots/" + commit;
  const auto folder = [](const std::string& path) { return entry(path.c_str(), EntryType::Folder); };
  const auto file = [](const std::string& path) { return entry(path.c_str()); };
  std::vector<Entry> entries{
      folder(hub),      folder(hub + "/refs"), file(hub + "/refs/main"), folder(hub + "/snapshots"),
      folder(snapshot), file(snapshot + "/a")};
  staging::ModelRecord record;
  record.name = "org/tiny";
  record.check = staging::ModelCheck::Published;
  record.revision = commit;
  record.entry_point = snapshot;
  record.hub_folder = hub;
  record.digests = {{snapshot + "/a", 0, "", ""}};
  record_ = record_of(record);
  EXPECT_TRUE(get(entries));
  auto other = entries;
  const std::string second = hub + "/snapshots/" + std::string(40, 'd');
  other.push_back(folder(second));
  other.push_back(file(second + "/a"));
  EXPECT_EQ(why(other), Errc::Mismatch) << "another revision, to which the ref may lead";
  record.hub_folder = "models--org--tiny/refs";
  record_ = record_of(record);
  EXPECT_EQ(why(entries), Errc::Mismatch) << "the cache of another model";

  record = {};
  record.name = "org/tiny";
  record.check = staging::ModelCheck::Published;
  record.digests = {{"blobs/sha256-1", 0, "", ""}};
  record_ = record_of(record);
  EXPECT_TRUE(get({folder("blobs"), file("blobs/sha256-1"), folder("manifests"), file("manifests/x")}));
}

TEST_F(CopyEntriesTest, APeerThatHasGoneMayComeBack) {
  std::vector<std::unique_ptr<Peer>> peers;
  peers.push_back(
      std::make_unique<Peer>(PeerAddress{"gone", {{"127.0.0.1", 1}}}, Security::make(key_, "nqn").value()));
  const auto got = get_entries({std::string(32, 'a'), {"gone"}}, wanted_, peers, folder_ / "boards");
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().kind, Errc::Unavailable);
}

}  // namespace
