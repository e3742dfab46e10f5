#include "csi/pods.hpp"

#include "tests/unit/csi/fixture.hpp"

namespace spark::csi {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;

std::string data(const std::string& driver, const std::string& volume) {
  return R"({"driverName": ")" + driver + R"(", "volumeHandle": ")" + volume + R"(", "nodeName": "n"})";
}

TEST(Pods, HaveTheVolumesThatKubeletRecorded) {
  const TemporaryFolder kubelet;
  kubelet.write("pods/1/volumes/kubernetes.io~csi/data/vol_data.json", data(kDriver, "csi-1"));
  kubelet.write("pods/1/volumes/kubernetes.io~csi/more/vol_data.json", data(kDriver, "csi-2"));
  kubelet.write("pods/1/volumes/kubernetes.io~csi/other/vol_data.json", data("another.driver", "csi-3"));
  kubelet.write("pods/2/volumes/kubernetes.io~empty-dir/x/file", "");
  std::filesystem::create_directories(kubelet.path / "pods/3/volumes/kubernetes.io~csi/half-made");
  const auto volumes = volumes_of_pods(kubelet.path);
  ASSERT_TRUE(volumes) << volumes.error().message();
  EXPECT_THAT(*volumes, ElementsAre("csi-1", "csi-2"));
}

TEST(Pods, AreUnknownIfKubeletsFolderIsMissingOrEmpty) {
  const TemporaryFolder kubelet;
  EXPECT_FALSE(volumes_of_pods(kubelet.path)) << "no answer is not the same as \"absent\"";
  std::filesystem::create_directories(kubelet.path / "pods");
  EXPECT_FALSE(volumes_of_pods(kubelet.path)) << "a node that runs the driver has a pod";
}

// csi-SHA256("1data"), as kubelet names the inline volume `data` of the pod with UID 1.
TEST(Pods, HaveTheVolumeOfAnUnreadableRecordToo) {
  const TemporaryFolder kubelet;
  kubelet.write("pods/1/volumes/kubernetes.io~csi/data/vol_data.json", "");
  kubelet.write("pods/2/volumes/kubernetes.io~csi/data/vol_data.json", data(kDriver, "csi-2"));
  const auto volumes = volumes_of_pods(kubelet.path);
  ASSERT_TRUE(volumes) << volumes.error().message();
  EXPECT_THAT(*volumes, UnorderedElementsAre(
                            "csi-7810958cad1f5ebb89dca003f191659b3ce7098dd199d9c74941418c19c07bfc", "csi-2"));
}

}  // namespace
}  // namespace spark::csi
