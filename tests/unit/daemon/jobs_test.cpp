#include "daemon/jobs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>

namespace spark {
namespace {

TEST(JobsTest, AJobIsFoundByItsIdAndByAKeyThatNoJobOfAnotherDaemonHas) {
  boost::asio::io_context context;
  const SystemClock clock;
  Jobs jobs(context.get_executor(), clock), later(context.get_executor(), clock);
  const auto job = jobs.create({"stage", {"imagenet"}});
  EXPECT_EQ(jobs.find("1"), job);
  EXPECT_EQ(jobs.find(job->key()), job);
  for (const char* other : {"", "2", "1-", "01", "-1", "1x"}) EXPECT_EQ(jobs.find(other), nullptr) << other;
  later.create({"stage", {"imagenet"}});
  EXPECT_EQ(later.find(job->key()), nullptr);
}

TEST(JobsTest, JobsThatWaitCountOnlyForTheirUser) {
  boost::asio::io_context context;
  const SystemClock clock;
  Jobs jobs(context.get_executor(), clock);
  jobs.create({"stage", {"a", "b"}, {.uid = 0}});
  const auto job = jobs.create({"stage", {"a", "b", "c"}, {.uid = 1000}});
  EXPECT_EQ(jobs.running_subjects(1000), 3u);
  EXPECT_EQ(jobs.running_subjects(1001), 0u);
  job->finish(json::object{});
  EXPECT_EQ(jobs.running_subjects(1000), 0u);
}

TEST(JobsTest, LongNamesAndJobsWithoutNamesCountForTheirUserToo) {
  boost::asio::io_context context;
  const SystemClock clock;
  Jobs jobs(context.get_executor(), clock);
  jobs.create({"stage", {std::string(800, 'x'), "a"}, {.uid = 1000}});
  EXPECT_EQ(jobs.running_subjects(1000), 10u);
  jobs.create({"drop", {}, {.uid = 1001}});
  EXPECT_EQ(jobs.running_subjects(1001), 1u);
}

TEST(JobsTest, OthersThanTheRequesterLearnTheOutcomeButNoNames) {
  boost::asio::io_context context;
  const SystemClock clock;
  Jobs jobs(context.get_executor(), clock);
  const auto done = jobs.create({"stage", {"set"}}), failed = jobs.create({"stage", {"set"}});
  done->finish(json::object{{"skipped", "private/merger.fifo"}});
  failed->finish(fail(Errc::Mismatch, "private/merger differs", "see private/merger"));
  std::string told;
  for (const auto& job : {done, failed})
    told += json::serialize(job->to_json(Job::Told::Outcome)) +
            json::serialize(job->final_event(Job::Told::Outcome));
  EXPECT_THAT(told, testing::Not(testing::HasSubstr("merger")));
  EXPECT_EQ(get_string(done->to_json(Job::Told::Outcome), "state"), "done");
  EXPECT_EQ(get_string(*get_object(failed->final_event(Job::Told::Outcome), "error"), "kind"), "mismatch");
  EXPECT_THAT(json::serialize(failed->to_json()), testing::HasSubstr("private/merger differs"));
}

TEST(JobsTest, OthersThanTheRequesterLearnWhichOutputIsWhereAndWhetherItIsPublished) {
  boost::asio::io_context context;
  const SystemClock clock;
  Jobs jobs(context.get_executor(), clock);
  const auto sent = jobs.create({"stage-out", {"nas:run7/step-1"}});
  sent->finish(json::object{{"name", "nas:run7/step-1"},
                            {"path", "/mnt/nas/run7/step-1"},
                            {"state", "waiting"},
                            {"skipped", "private/merger.fifo"}});
  EXPECT_EQ(
      json::serialize(sent->final_event(Job::Told::Outcome)),
      R"({"event":"done","result":{"name":"nas:run7/step-1","path":"/mnt/nas/run7/step-1","state":"waiting"}})");
}

TEST(JobsTest, EndedJobsWithLargeResultsAreForgottenSoonerAndRemoveThoseOfNoOther) {
  boost::asio::io_context context;
  const SystemClock clock;
  Jobs jobs(context.get_executor(), clock);
  const auto ended = [&](uid_t uid, std::size_t bytes) {
    auto job = jobs.create({"stage", {}, {.uid = uid}});
    job->finish(json::object{{"warnings", std::string(bytes, 'x')}});
    return job->key();
  };
  const std::string roots = ended(0, 1'000), first = ended(1000, 5 << 20);
  for (int i = 0; i < 3; ++i) ended(1000, 5 << 20);
  const std::string last = ended(1000, 20 << 20);
  ended(0, 1);
  EXPECT_EQ(jobs.find(first), nullptr);
  EXPECT_NE(jobs.find(last), nullptr) << "its requester has not read it";
  EXPECT_NE(jobs.find(roots), nullptr);
}

TEST(JobsTest, AllWhoReadTheEndAtOnceShareOneText) {
  boost::asio::io_context context;
  const SystemClock clock;
  Jobs jobs(context.get_executor(), clock);
  const auto job = jobs.create({"stage", {"set"}});
  job->finish(json::object{{"skipped", "private"}});
  auto line = job->final_line(Job::Told::All);
  EXPECT_EQ(*line, json::serialize(job->final_event()) + "\n");
  EXPECT_EQ(job->final_line(Job::Told::All), line);
  EXPECT_EQ(job->final_line(Job::Told::Outcome)->find("private"), std::string::npos);
  const std::weak_ptr<const std::string> text = line;
  line.reset();
  EXPECT_TRUE(text.expired()) << "the last reader has gone";
}

TEST(JobsTest, AUserWithManyEndedJobsRemovesThoseOfNoOther) {
  boost::asio::io_context context;
  const SystemClock clock;
  Jobs jobs(context.get_executor(), clock);
  const auto ended = [&](uid_t uid) {
    auto job = jobs.create({"drop", {}, {.uid = uid}});
    job->finish(json::object{});
    return job->key();
  };
  const std::string roots = ended(0), first = ended(1000), running = jobs.create({"stage", {}, {}})->key();
  for (int i = 0; i < 300; ++i) ended(1000);
  EXPECT_NE(jobs.find(roots), nullptr);
  EXPECT_EQ(jobs.find(first), nullptr);
  for (uid_t uid = 2000; uid < 2100; ++uid)
    for (int i = 0; i < 30; ++i) ended(uid);
  EXPECT_NE(jobs.find(roots), nullptr);
  EXPECT_NE(jobs.find(running), nullptr);
  EXPECT_LE(jobs.all().size(), 2002u);
}

}  // namespace
}  // namespace spark
