#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <functional>
#include <sstream>
#include <utility>

#include "base/file.hpp"
#include "fleet/transport/key.hpp"
#include "tests/support/local_port.hpp"
#include "tests/support/skip.hpp"
#include "tests/support/temp_folder.hpp"
#include "tests/unit/cli/fixture.hpp"

namespace spark::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

// Nobody listens there, and this host has no such address.
constexpr char kPeer[] = "127.0.0.2";

class FleetJoin : public testing::Test {
 protected:
  FleetJoin() {
    ::signal(SIGPIPE, SIG_IGN);
    program_.context.is_root = true;
    program_.client.answer("POST /v1/reload", 200, "{}");
    program_.client.answer(
        "GET /v1/status", 200,
        R"({"fleet": {"serving": true, "peers": [{"name": "127.0.0.2"}, {"name": "b"}]}})");
  }
  int join(std::vector<std::string> words) {
    program_.out.str("");
    program_.err.str("");
    std::vector<std::string> all{"--config", config_, "fleet", "join"};
    all.insert(all.end(), words.begin(), words.end());
    return program_.run(all);
  }
  std::string config() const { return read_file(config_).value_or(""); }
  void write(const std::string& path, const std::string& text) {
    EXPECT_TRUE(write_file_atomically(path, text, path == carried_ ? 0600 : 0644));
  }

  spark::test::TempFolder folder_;
  std::string config_ = folder_ / "spark-stage.yaml", key_ = folder_ / "keys/fleet",
              carried_ = folder_ / "carried";
  Program program_;
};

TEST_F(FleetJoin, TheFirstHostMakesTheKeyAndSaysWhatToCarry) {
  write(config_, "version: 1   # mine\n");
  EXPECT_EQ(join({"b=127.0.0.2", "--listen", "127.0.0.1"}), 0) << program_.errors();
  EXPECT_EQ(config(), "version: 1   # mine\n\nfleet:\n  listen: 127.0.0.1:7789\n  key_file: " + key_ +
                          "\n  peers:\n    b: [127.0.0.2]\n");
  const auto key = fleet::read_key(key_);
  ASSERT_TRUE(key) << key.error().message();
  EXPECT_THAT(program_.output(),
              testing::ContainsRegex(
                  "ssh -t 127.0.0.2 sudo spark-stage fleet join ([^ ]+=)?127.0.0.1 --key-file fleet.key"));
  EXPECT_THAT(program_.output() + program_.errors(), Not(HasSubstr(*key)));
  EXPECT_THAT(program_.client.sent, testing::Contains(HasSubstr("POST /v1/reload")));
}

TEST_F(FleetJoin, TheAddressIsThatOfTheRouteToTheFirstPeer) {
  EXPECT_EQ(join({kPeer}), 0) << program_.errors();
  EXPECT_THAT(config(), HasSubstr("listen: 127.0.0."));
}

TEST_F(FleetJoin, TheOtherHostTakesTheKeyFromAFileOrTheStandardInput) {
  const std::string key = fleet::new_key().value();
  write(carried_, key + "\n");
  EXPECT_EQ(join({kPeer, "--listen", "127.0.0.1", "--key-file", carried_}), 4) << "nobody listens there";
  EXPECT_THAT(program_.errors(), HasSubstr("peer 127.0.0.2 at 127.0.0.2:7789"));
  EXPECT_THAT(program_.output(), HasSubstr("delete " + carried_));
  EXPECT_EQ(fleet::read_key(key_).value_or(""), key);
  std::filesystem::remove(key_);
  program_.in.str(key);
  EXPECT_EQ(join({kPeer, "--key-file", "-"}), 4) << program_.errors();
  EXPECT_EQ(fleet::read_key(key_).value_or(""), key);
  EXPECT_THAT(program_.output() + program_.errors(), Not(HasSubstr(key)));
}

TEST_F(FleetJoin, AgainItChangesNothing) {
  EXPECT_EQ(join({kPeer}), 0) << program_.errors();
  const std::string text = config(), key = read_file(key_).value();
  EXPECT_EQ(join({kPeer}), 4);
  EXPECT_EQ(join({}), 4) << "it tests the links to the peers of the file";
  EXPECT_THAT(program_.output(), Not(HasSubstr("First tell this host")));
  EXPECT_EQ(config(), text);
  EXPECT_EQ(read_file(key_).value(), key);
}

TEST_F(FleetJoin, AnotherKeyIsRefusedAndNothingIsChanged) {
  EXPECT_EQ(join({kPeer}), 0) << program_.errors();
  const std::string text = config(), key = read_file(key_).value();
  write(carried_, fleet::new_key().value());
  EXPECT_EQ(join({"b=127.0.0.3", "--key-file", carried_}), 7);
  EXPECT_THAT(program_.errors(), HasSubstr("has another key"));
  EXPECT_EQ(config(), text);
  EXPECT_EQ(read_file(key_).value(), key);
}

TEST_F(FleetJoin, WhatCanNotWorkIsRefusedBeforeAnythingIsWritten) {
  write(carried_, "not a key\n");
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{}, "which address"},
      {{"127.0.0.1"}, "is this host"},
      {{kPeer, "--listen", "spark1"}, "no IP address"},
      {{kPeer, "--listen", "203.0.113.9"}, "no IP address of this host"},
      {{kPeer, "--listen", "0.0.0.0"}, "need one IP address"},
      {{"203.0.113.9", "--listen", "127.0.0.1"}, "only this host reaches it"},
      {{"b=localhost"}, "is this host: its name leads to "},
      {{"b/c=127.0.0.2"}, "can't be its name"},
      {{kPeer, "--key-file", carried_}, "64 hexadecimal digits"}};
  for (const auto& [words, why] : cases) {
    EXPECT_EQ(join(words), 2) << why;
    EXPECT_THAT(program_.errors(), HasSubstr(why));
  }
  program_.context.is_root = false;
  EXPECT_EQ(join({kPeer}), 1);
  EXPECT_FALSE(std::filesystem::exists(config_));
  EXPECT_FALSE(std::filesystem::exists(key_));
}

TEST_F(FleetJoin, AKeyThatOthersMayHaveReadOrWrittenIsRefused) {
  for (const unsigned mode : {0644, 0602, 0640}) {
    ASSERT_TRUE(write_file_atomically(carried_, fleet::new_key().value() + "\n", mode));
    EXPECT_EQ(join({kPeer, "--listen", "127.0.0.1", "--key-file", carried_}), 7) << mode;
    EXPECT_THAT(program_.errors(), HasSubstr("chmod 600"));
    EXPECT_FALSE(std::filesystem::exists(key_));
  }
}

TEST_F(FleetJoin, AKeyOfAnotherUserIsRefused) {
  constexpr uid_t kAlice = 4000;
  if (::geteuid() != 0) SPARK_SKIP("only root gives a file away");
  write(carried_, fleet::new_key().value() + "\n");
  ASSERT_EQ(::chown(carried_.c_str(), kAlice, kAlice), 0);
  ::unsetenv("SUDO_UID");
  EXPECT_EQ(join({kPeer, "--listen", "127.0.0.1", "--key-file", carried_}), 7);
  EXPECT_THAT(program_.errors(), HasSubstr("belongs to another user, uid 4000"));
  EXPECT_FALSE(std::filesystem::exists(key_));
  ::setenv("SUDO_UID", "4000", 1);
  EXPECT_EQ(join({kPeer, "--listen", "127.0.0.1", "--key-file", carried_}), 4) << "nobody listens there";
  EXPECT_TRUE(std::filesystem::exists(key_));
  EXPECT_EQ(join({kPeer, "--key-file", carried_}), 4);
  EXPECT_THAT(program_.output(), HasSubstr("delete " + carried_)) << "again, while it is still there";
  ::unsetenv("SUDO_UID");
  EXPECT_EQ(join({kPeer, "--key-file", key_}), 4);
  EXPECT_THAT(program_.output(), Not(HasSubstr("delete "))) << "it is the key itself";
}

TEST_F(FleetJoin, WithANewConfigurationTheNextStepIsToStartTheDaemon) {
  for (const char* text : {"", "# only a comment\n"}) {
    write(config_, text);
    std::filesystem::remove(key_);
    Program bare;
    bare.context.is_root = true;
    bare.client.fail_once("POST /v1/reload", {Errc::Unavailable, "no daemon", ""});
    EXPECT_EQ(bare.run({"--config", config_, "fleet", "join", kPeer}), 0) << bare.errors();
    EXPECT_THAT(bare.output(), HasSubstr("now: sudo systemctl enable --now spark-staged"));
    EXPECT_THAT(bare.output(), HasSubstr("no link is tested yet"));
    EXPECT_THAT(bare.output(), HasSubstr("--key-file fleet.key")) << "the other host can go on";
    EXPECT_THAT(config(), HasSubstr("fleet:"));
    EXPECT_THAT(config(), testing::StartsWith(text));
  }
}

TEST_F(FleetJoin, APortOfOnesOwnIsInWhatTheOtherHostTypes) {
  EXPECT_EQ(join({"b=127.0.0.2", "--listen", "127.0.0.1:7800"}), 0) << program_.errors();
  EXPECT_THAT(config(), HasSubstr("b: [127.0.0.2:7789]")) << "the other one has its own port";
  EXPECT_THAT(program_.output(),
              testing::ContainsRegex("fleet join ([^ ]+=)?127.0.0.1:7800 --key-file fleet.key\n"));
  std::filesystem::remove(config_);
  EXPECT_EQ(join({"b=127.0.0.2:7801", "--listen", "127.0.0.1"}), 4);
  EXPECT_THAT(program_.output(), HasSubstr("127.0.0.1 --key-file fleet.key --listen 127.0.0.2:7801\n"));
  EXPECT_EQ(join({"127.0.0.2"}), 4) << "its port is in the file";
  EXPECT_THAT(program_.errors(), HasSubstr("peer b at 127.0.0.2:7801"));
}

TEST_F(FleetJoin, EachOtherHostHasItsCommands) {
  EXPECT_EQ(join({"b=127.0.0.2", "127.0.0.3", "--listen", "127.0.0.1"}), 4)
      << "the daemon knows no 127.0.0.3";
  for (const char* other : {"ssh -t 127.0.0.2 ", "ssh -t 127.0.0.3 "})
    EXPECT_THAT(program_.output(), HasSubstr(other));
}

// Each host refuses those that it does not list.
TEST_F(FleetJoin, TheOthersAreToldOfEachOther) {
  EXPECT_EQ(join({"b=127.0.0.2", "c=127.0.0.3:7801", "d=127.0.0.4", "--listen", "127.0.0.1"}), 4);
  for (const char* words :
       {"127.0.0.1 c=127.0.0.3:7801 d=127.0.0.4 --key-file fleet.key\n",
        "127.0.0.1 b=127.0.0.2 d=127.0.0.4 --key-file fleet.key --listen 127.0.0.3:7801\n",
        "127.0.0.1 b=127.0.0.2 c=127.0.0.3:7801 --key-file fleet.key\n"})
    EXPECT_THAT(program_.output(), HasSubstr(words));
  EXPECT_THAT(program_.output(), Not(HasSubstr("in a ring")));
}

TEST_F(FleetJoin, AHostWhoseKeyIsMissingStaysInItsFleet) {
  EXPECT_EQ(join({"b=127.0.0.2", "--listen", "127.0.0.1"}), 0) << program_.errors();
  const std::string key = read_file(key_).value(), text = config();
  std::filesystem::remove(key_);
  for (const std::vector<std::string>& words : {std::vector<std::string>{}, {"127.0.0.2"}, {"c=127.0.0.3"}}) {
    EXPECT_EQ(join(words), 7);
    EXPECT_THAT(program_.errors(), HasSubstr("the key " + key_ + " of this fleet is missing"));
    EXPECT_THAT(program_.errors(), HasSubstr("take it from another host with --key-file"));
    EXPECT_FALSE(std::filesystem::exists(key_));
    EXPECT_EQ(config(), text);
  }
  write(carried_, key);
  EXPECT_EQ(join({"--key-file", carried_}), 4) << program_.errors();
  EXPECT_EQ(read_file(key_).value(), key);
}

TEST_F(FleetJoin, APeerHasOneName) {
  EXPECT_EQ(join({"b=127.0.0.2", "127.0.0.2", "--listen", "127.0.0.1"}), 0) << program_.errors();
  const std::string text = config();
  EXPECT_THAT(text, testing::EndsWith("  peers:\n    b: [127.0.0.2]\n"));
  const std::vector<std::string> cases[] = {
      {"spark9=127.0.0.2"}, {"spark9=127.0.0.2:7789"}, {"c=127.0.0.3", "d=127.0.0.3"}};
  for (const auto& words : cases) {
    EXPECT_EQ(join(words), 7) << words.back();
    EXPECT_THAT(program_.errors(), testing::ContainsRegex("127.0.0.[23]:7789 is peer [bc] already"));
    EXPECT_EQ(config(), text);
  }
  EXPECT_EQ(join({"b=127.0.0.2:7801"}), 7) << "another address of it is added by hand";
  EXPECT_EQ(join({"e=127.0.0.2:7802"}), 4) << "a second daemon there";
  EXPECT_THAT(config(), HasSubstr("e: [127.0.0.2:7802]"));
  EXPECT_EQ(join({"e=127.0.0.2"}), 4);
  EXPECT_THAT(program_.errors(), HasSubstr("serves no peer")) << "the fake daemon knows no e";
}

TEST_F(FleetJoin, EachHostIsToldTheAddressOnTheNetworkToIt) {
  EXPECT_EQ(join({"--listen", "127.0.0.1", "b=127.0.0.2"}), 0) << program_.errors();
  const std::string one = "listen: 127.0.0.1:7789", both = "listen: ['203.0.113.9:7800', '127.0.0.1:7789']";
  std::string text = config();
  write(config_, text.replace(text.find(one), one.size(), both));
  EXPECT_EQ(join({}), 4);
  EXPECT_THAT(program_.output(), HasSubstr("this host is reached at 127.0.0.1:7789"));
  EXPECT_THAT(program_.output(),
              testing::ContainsRegex("fleet join ([^ ]+=)?127.0.0.1 --key-file fleet.key"));
  EXPECT_THAT(program_.output(), Not(HasSubstr("203.0.113.9")));
}

TEST_F(FleetJoin, AHostThatServesNobodyIsAnErrorAlsoWithoutATestOfLinks) {
  Program away;
  away.context.is_root = true;
  away.client.answer("POST /v1/reload", 200, "{}");
  away.client.answer("GET /v1/status", 200, R"({"fleet": {"serving": false, "reason": "no such address"}})");
  EXPECT_EQ(away.run({"--config", config_, "fleet", "join", kPeer}), 4);
  EXPECT_THAT(away.errors(), HasSubstr("serves no peer: no such address"));
  EXPECT_THAT(away.output(), HasSubstr("--key-file fleet.key"));
}

// Edits the configuration while the key is waited for.
class EditingInput : public std::stringbuf {
 public:
  EditingInput(std::string text, std::function<void()> edit)
      : std::stringbuf(std::move(text)), edit_(std::move(edit)) {}

 protected:
  int_type underflow() override {
    if (edit_) std::exchange(edit_, nullptr)();
    return std::stringbuf::underflow();
  }

 private:
  std::function<void()> edit_;
};

TEST_F(FleetJoin, AnEditWhileTheKeyIsWaitedForStays) {
  write(config_, "version: 1\n");
  EditingInput input(fleet::new_key().value(), [&] { write(config_, "version: 1   # edited\n"); });
  static_cast<std::ios&>(program_.in).rdbuf(&input);
  EXPECT_EQ(join({kPeer, "--key-file", "-"}), 4);
  static_cast<std::ios&>(program_.in).rdbuf(program_.in.rdbuf());
  EXPECT_THAT(config(), HasSubstr("# edited"));
  EXPECT_THAT(config(), HasSubstr("fleet:"));
}

TEST_F(FleetJoin, TheNameOfTheConfigurationMayBeRelative) {
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(std::filesystem::path(config_).parent_path());
  Program& program = program_;
  EXPECT_EQ(program.run({"--config", "spark-stage.yaml", "fleet", "join", kPeer}), 0) << program.errors();
  std::filesystem::current_path(before);
  EXPECT_THAT(config(), HasSubstr("fleet:"));
}

TEST_F(FleetJoin, WithoutADaemonTheNextStepIsToStartIt) {
  write(config_, "version: 1\n");
  Program bare;
  bare.context.is_root = true;
  bare.client.fail_once("POST /v1/reload", {Errc::Unavailable, "no daemon", ""});
  EXPECT_EQ(bare.run({"--config", config_, "fleet", "join", kPeer}), 4);
  EXPECT_THAT(bare.errors(), HasSubstr("systemctl enable --now spark-staged"));
  EXPECT_THAT(bare.output(), HasSubstr("--key-file fleet.key")) << "the other host can go on";
  EXPECT_THAT(config(), HasSubstr("fleet:"));
}

TEST_F(FleetJoin, TheModeAndTheLinkOfTheFileStay) {
  write(folder_ / "real.yaml", "version: 1\n");
  ::chmod((folder_ / "real.yaml").c_str(), 0640);
  std::filesystem::create_symlink("real.yaml", config_);
  EXPECT_EQ(join({kPeer}), 0) << program_.errors();
  struct stat info {};
  EXPECT_EQ(::lstat(config_.c_str(), &info), 0);
  EXPECT_TRUE(S_ISLNK(info.st_mode));
  EXPECT_EQ(::stat(config_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0640U);
}

TEST_F(FleetJoin, ALinkToAFileThatIsNotThereStays) {
  std::filesystem::create_symlink("real.yaml", config_);
  EXPECT_EQ(join({kPeer}), 0) << program_.errors();
  EXPECT_TRUE(std::filesystem::is_symlink(config_));
  EXPECT_THAT(read_file(folder_ / "real.yaml").value_or(""), HasSubstr("fleet:"));
}

}  // namespace
}  // namespace spark::cli
