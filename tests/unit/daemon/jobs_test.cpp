#include "daemon/jobs.hpp"

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

}  // namespace
}  // namespace spark
