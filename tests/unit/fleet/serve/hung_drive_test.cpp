// A drive that does not answer ends the serving of what is on it, and of nothing else.
#include <gtest/gtest.h>
#include <signal.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "fleet/fetch/peer.hpp"
#include "fleet/serve/server.hpp"
#include "fleet/transport/key.hpp"
#include "tests/support/local_port.hpp"
#include "tests/support/temp_folder.hpp"

using namespace spark;
using namespace spark::fleet;
using namespace std::chrono_literals;

namespace {

const std::string kHung = "c" + std::string(32, 'a'), kSound = "c" + std::string(32, 'b');

template <class Condition>
bool comes_true(Condition condition) {
  const auto until = std::chrono::steady_clock::now() + 60s;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= until) return false;
    std::this_thread::sleep_for(10ms);
  }
  return true;
}

class Drive {
 public:
  ~Drive() { answer(); }
  void wait() {
    std::unique_lock lock(mutex_);
    ++waiting_;
    answers_.wait(lock, [this] { return is_answering_; });
    --waiting_;
  }
  void answer() {
    const std::scoped_lock lock(mutex_);
    is_answering_ = true;
    answers_.notify_all();
  }
  int waiting() const {
    const std::scoped_lock lock(mutex_);
    return waiting_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable answers_;
  bool is_answering_ = false;
  int waiting_ = 0;
};

class OfferOfDrive final : public Offer {
 public:
  explicit OfferOfDrive(Drive* hung) : hung_(hung) {}
  SetState state() const override { return {.kind = SetState::Kind::Published, .unit_count = 1}; }
  Result<UnitBody> read(std::uint64_t /*unit*/, const staging::IoBuffer& buffer) const override {
    if (hung_ != nullptr) hung_->wait();
    return UnitBody{{buffer.data(), 4096}, {}, {}, true};
  }
  bool is_current() const override { return true; }
  std::uint64_t files() const override { return 1; }

 private:
  Drive* hung_;
};

class TwoDrives final : public OfferSource {
 public:
  TwoDrives(Drive& hung, bool hangs_in_load) : hung_(hung), hangs_in_load_(hangs_in_load) {}
  Result<std::shared_ptr<Offer>> load(const std::string& set) override {
    if (set == kHung && hangs_in_load_) hung_.wait();
    return std::make_shared<OfferOfDrive>(set == kHung ? &hung_ : nullptr);
  }
  SetState state(const std::string& /*set*/, NodeId /*from*/) override { return {}; }
  bool is_current(const std::string& /*set*/, const Offer& /*offer*/) const override { return true; }

 private:
  Drive& hung_;
  bool hangs_in_load_;
};

class HungDrive : public testing::TestWithParam<bool> {
 protected:
  const std::string key_ = new_key().value();
  spark::test::TempFolder folder_;
  Drive drive_;
  Endpoint at_{"127.0.0.1", spark::test::LocalPort().portal.port};
  StopFlag stop_{false};
  Server server_{settings(), Security::make(key_, "nqn.server").value(),
                 [](const std::string& /*address*/) { return true; },
                 std::make_unique<TwoDrives>(drive_, GetParam())};
  Result<> served_;
  std::thread serving_;

  HungDrive() {
    ::signal(SIGPIPE, SIG_IGN);  // as in each worker
    EXPECT_TRUE(server_.listen());
    serving_ = std::thread([this] { served_ = server_.run(stop_); });
  }
  ~HungDrive() override {
    end();
    drive_.answer();
  }
  ServerSettings settings() const {
    ServerSettings made;
    made.listen = {at_};
    made.cache = folder_ / "cache";
    made.state_dir = folder_ / "state";
    made.boards = folder_ / "state/fleet";
    made.reading = 500ms;
    return made;
  }
  void end() {
    stop_ = true;
    if (serving_.joinable()) serving_.join();
  }
  // As a peer that gives up after `patience`.
  Result<AnswerHead> ask(const std::string& set, std::chrono::milliseconds patience) {
    Peer peer({"peer", {at_}}, Security::make(key_, "nqn.client").value());
    std::string unit(8 * kMiB, '\0');
    return peer.get({PeerRequest::Kind::Unit, set, 0, 0}, unit, {patience, patience});
  }
};

TEST_P(HungDrive, AnotherDrivesSetsAreServedToAHostThatAsksForBoth) {
  std::vector<std::thread> asking;
  for (int i = 0; i < 16; ++i) asking.emplace_back([this] { EXPECT_FALSE(ask(kHung, 2s)); });
  for (std::thread& one : asking) one.join();
  for (int i = 0; i < 16; ++i) EXPECT_FALSE(ask(kHung, 60s)) << "at once";
  const auto answer = ask(kSound, 60s);
  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_EQ(answer->status, 200u);
  EXPECT_LE(drive_.waiting(), GetParam() ? 1 : 8);
  EXPECT_TRUE(comes_true([this] { return server_.report().at("buffers_in_use") == 0; }));
  drive_.answer();
  EXPECT_TRUE(comes_true([this] { return ask(kHung, 60s).has_value(); }));
}

TEST_P(HungDrive, AServerThatIsToEndDoesSoAndLeavesItsAddress) {
  ASSERT_TRUE(comes_true([this] { return !ask(kHung, 200ms) && drive_.waiting() > 0; }));
  end();
  ASSERT_FALSE(served_);
  EXPECT_EQ(served_.error().kind, Errc::TimedOut);
  EXPECT_TRUE(listen_on(at_));
}

INSTANTIATE_TEST_SUITE_P(Where, HungDrive, testing::Values(false, true), [](const auto& its) {
  return std::string(its.param ? "InTheListOfFiles" : "InAFile");
});

}  // namespace
