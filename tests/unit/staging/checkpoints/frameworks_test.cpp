// A small tree of each framework, as in its source: which of its entries are complete checkpoints. The table
// of docs/checkpoints.md says the same.
#include <gtest/gtest.h>

#include "tests/unit/staging/outputs/checkpoints_fixture.hpp"

namespace spark::staging {
namespace {

using namespace test;

class Frameworks : public Checkpoints {
 protected:
  // Each is written a minute after the one before; a name that ends with "/" is an empty folder.
  void tree(const Names& names) {
    for (const std::string& name : names) {
      if (name.ends_with('/')) {
        std::filesystem::create_directories(out_ / name);
      } else {
        written(++minute_, name, name.ends_with(".json") ? "{}" : "__0_0.distcp");
      }
    }
  }
  int minute_ = 0;
};

TEST_F(Frameworks, TorchSaveAndRename) {
  tree({"step-100.pt", ".step-200.pt", "step-300.pt.tmp", "train.log", "config.json", "train.py"});
  EXPECT_EQ(complete(Rule::Rename), Names{"step-100.pt"});
}

// torch/distributed/checkpoint/filesystem.py: .metadata is written last.
TEST_F(Frameworks, TorchDistributedCheckpoint) {
  tree({"step-100/__0_0.distcp", "step-100/.metadata", "step-200/__0_0.distcp", "tb/events.out.tfevents.1"});
  EXPECT_EQ(complete(Rule::Dcp), Names{"step-100"});
}

// transformers/trainer_utils.py, _re_checkpoint: ^checkpoint\-(\d+)$.
TEST_F(Frameworks, HuggingFaceTrainerAndThoseThatUseIt) {
  tree({"checkpoint-500/config.json", "checkpoint-500/model.safetensors", "checkpoint-500/optimizer.pt",
        "checkpoint-500/trainer_state.json", "tmp-checkpoint-1000/model.safetensors", "runs/host/events",
        "README.md", "model.safetensors", "training_args.bin", "trainer_state.json", "train_results.json",
        "tokenizer.json", "all_results.json", "adapter_model.safetensors"});
  EXPECT_EQ(complete(Rule::HuggingFace), Names{"checkpoint-500"});
  EXPECT_EQ(settled(Rule::HuggingFace).size(), 1u);
}

// unsloth/trainer.py extends the Trainer; studio/backend/core/training (diffusion) renames
// .tmp-checkpoint-N-UUID, with trainer_state.json as its last file. save_pretrained_merged and
// save_pretrained_gguf make the folders of models.
TEST_F(Frameworks, Unsloth) {
  tree({"checkpoint-60/adapter_config.json", "checkpoint-60/adapter_model.safetensors",
        "checkpoint-60/optimizer.pt", "checkpoint-60/rng_state.pth", "checkpoint-60/scheduler.pt",
        "checkpoint-60/tokenizer.json", "checkpoint-60/trainer_state.json", "checkpoint-60/training_args.bin",
        ".tmp-checkpoint-120-5f1c/adapter_model.safetensors", ".tmp-checkpoint-120-5f1c/trainer_state.json",
        "unsloth_compiled_cache/UnslothSFTTrainer.py", "lora_model/adapter_model.safetensors",
        "model/model.safetensors", "model-unsloth.Q4_K_M.gguf", "runs/host/events"});
  EXPECT_EQ(complete(Rule::HuggingFace), Names{"checkpoint-60"});
  EXPECT_EQ(settled(Rule::HuggingFace).size(), 1u);
}

// llamafactory/extras/constants.py: TRAINER_LOG, RUNNING_LOG, LLAMABOARD_CONFIG, TRAINING_ARGS;
// train/callbacks.py, FixValueHeadModelCallback: with `stage: rm` or `ppo` the weights are written again
// after trainer_state.json, and value_head.safetensors at the end.
TEST_F(Frameworks, LlamaFactory) {
  tree({"checkpoint-500/adapter_model.safetensors", "checkpoint-500/optimizer.pt",
        "checkpoint-500/trainer_state.json", "trainer_log.jsonl", "running_log.txt", "llamaboard_config.yaml",
        "training_args.yaml", "training_loss.png", "train_results.json", "all_results.json",
        "trainer_state.json", "adapter_model.safetensors", "Modelfile", "README.md"});
  EXPECT_EQ(complete(Rule::HuggingFace), Names{"checkpoint-500"});
  tree({"checkpoint-600/optimizer.pt", "checkpoint-600/trainer_state.json",
        "checkpoint-600/model.safetensors"});
  EXPECT_EQ(complete(Rule::HuggingFace), Names{"checkpoint-500"});
  tree({"checkpoint-600/value_head.safetensors"});
  EXPECT_EQ(complete(Rule::HuggingFace), (Names{"checkpoint-600", "checkpoint-500"}));
  tree({"checkpoint-600/model.safetensors"});
  EXPECT_EQ(complete(Rule::HuggingFace), Names{"checkpoint-500"}) << "it is saved again";
}

// axolotl/train.py: save_initial_configs, save_trained_model; callbacks/tokens_per_second.py:
// tokens_state.json; callbacks/dynamic_checkpoint.py: .axolotl_save_checkpoint; `axolotl merge-lora`: merged.
TEST_F(Frameworks, Axolotl) {
  tree({"adapter_config.json", "config.json", "tokenizer.json", "tokenizer_config.json", "debug.log",
        "checkpoint-20/pytorch_model_fsdp_0/__0_0.distcp", "checkpoint-20/pytorch_model_fsdp_0/.metadata",
        "checkpoint-20/optimizer_0/__0_0.distcp", "checkpoint-20/optimizer_0/.metadata",
        "checkpoint-20/tokens_state.json", "checkpoint-20/trainer_state.json",
        "checkpoint-20/rng_state_0.pth", "checkpoint-40/adapter_model.safetensors",
        "checkpoint-40/optimizer.pt", ".axolotl_save_checkpoint", "merged/model.safetensors", "README.md"});
  EXPECT_EQ(complete(Rule::HuggingFace), Names{"checkpoint-20"});
  EXPECT_EQ(why_not(Rule::HuggingFace, "checkpoint-40"), "it has no trainer_state.json yet");
  EXPECT_EQ(settled(Rule::HuggingFace).size(), 2u);
}

// accelerate/accelerator.py, save_state: checkpoint_N; what is written last differs, so the script marks it.
TEST_F(Frameworks, Accelerate) {
  tree({"checkpoint_0/model.safetensors", "checkpoint_0/optimizer.bin", "checkpoint_0/random_states_0.pkl",
        "checkpoint_0/DONE", "checkpoint_1/model.safetensors", "logs/"});
  EXPECT_EQ(complete(Rule::Marker, "DONE"), Names{"checkpoint_0"});
}

// deepspeed/runtime/engine.py: tag global_stepN, then `latest`; deepspeed/checkpoint/ds_to_universal.py.
TEST_F(Frameworks, DeepSpeed) {
  tree({"global_step100/mp_rank_00_model_states.pt", "global_step100_universal/mp_rank_00_model_states.pt",
        "zero_to_fp32.py"});
  written(++minute_, "latest", "global_step100"),
      written(++minute_, "latest_universal", "global_step100_universal");
  EXPECT_EQ(complete(Rule::DeepSpeed), Names{"global_step100"});
  EXPECT_EQ(settled(Rule::DeepSpeed).size(), 1u);
}

// megatron/training/checkpointing.py; core/dist_checkpointing/serialization.py, save: metadata.json is last,
// and load() refuses a folder without it.
TEST_F(Frameworks, MegatronLm) {
  tree({"iter_0000100/common.pt", "iter_0000100/__0_0.distcp", "iter_0000100/.metadata",
        "iter_0000100/metadata.json", "iter_0000300/common.pt", "iter_0000300/__0_0.distcp",
        "iter_0000300/.metadata", "latest_checkpointed_iteration.txt", "iter_0000200/__0_0.distcp",
        "progress.txt", "tensorboard/"});
  EXPECT_EQ(complete(Rule::Dcp), Names{"iter_0000100"});
}

// nemo/lightning/pytorch/callbacks/model_checkpoint.py, UNFINISHED_CHECKPOINT_SUFFIX.
TEST_F(Frameworks, NeMo2) {
  tree({"m--step=99-last/context/model.yaml", "m--step=99-last/weights/__0_0.distcp",
        "m--step=99-last/weights/common.pt", "m--step=99-last/weights/.metadata",
        "m--step=99-last/weights/metadata.json", "m--step=199-last-unfinished",
        "m--step=199-last/weights/__0_0.distcp", "m--step=199-last/weights/.metadata"});
  EXPECT_EQ(complete(Rule::Dcp), Names{"m--step=99-last"});
  EXPECT_EQ(complete(Rule::Rename), Names{"m--step=99-last"});
}

// lightning/pytorch/callbacks/model_checkpoint.py: STARTING_VERSION, CHECKPOINT_NAME_LAST, save_last="link".
TEST_F(Frameworks, Lightning) {
  tree({"epoch=1-step=20.ckpt", "epoch=1-step=20-v1.ckpt", "hparams.yaml",
        "lightning_logs/version_0/metrics.csv"});
  std::filesystem::create_symlink("epoch=1-step=20-v1.ckpt", out_ / "last.ckpt");
  const Names both{"epoch=1-step=20-v1.ckpt", "epoch=1-step=20.ckpt"};
  EXPECT_EQ(complete(Rule::Rename), both);
  std::filesystem::remove(out_ / "last.ckpt");
  tree({"last.ckpt"});
  EXPECT_EQ(complete(Rule::Rename), (Names{"last.ckpt", "epoch=1-step=20-v1.ckpt", "epoch=1-step=20.ckpt"}))
      << "an epoch that is none of the best";
  tree({"epoch=2-step=30.ckpt"});
  EXPECT_EQ(complete(Rule::Rename).front(), "epoch=2-step=30.ckpt");
  EXPECT_EQ(complete(Rule::Rename).size(), 3u) << "last.ckpt is older";
}

// The same with filename="best-{epoch}-{val_loss:.2f}".
TEST_F(Frameworks, LightningWithNamesOfTheBest) {
  tree({"best-epoch=3-val_loss=0.21.ckpt", "last.ckpt"});
  EXPECT_EQ(complete(Rule::Rename), (Names{"last.ckpt", "best-epoch=3-val_loss=0.21.ckpt"}));
  tree({"best-epoch=9-val_loss=0.19.ckpt"});
  EXPECT_EQ(complete(Rule::Rename).front(), "best-epoch=9-val_loss=0.19.ckpt");
}

// ultralytics/engine/trainer.py, save_model: last.pt at each epoch, epochN.pt every save_period.
TEST_F(Frameworks, Ultralytics) {
  tree({"epoch10.pt", "best.pt", "last.pt"});
  EXPECT_EQ(complete(Rule::Rename), (Names{"last.pt", "epoch10.pt"}));
}

// timm/utils/checkpoint_saver.py: last.pth.tar at each epoch; checkpoint-N.pth.tar is a link or copy of it.
TEST_F(Frameworks, Timm) {
  tree({"checkpoint-3.pth.tar", "last.pth.tar", "model_best.pth.tar", "args.yaml", "summary.csv"});
  EXPECT_EQ(complete(Rule::Rename), (Names{"last.pth.tar", "checkpoint-3.pth.tar", "model_best.pth.tar"}));
}

// VITS, train.py: G_{}.pth and D_{}.pth of one step.
TEST_F(Frameworks, Vits) {
  tree({"G_1000.pth", "D_1000.pth", "config.json", "train.log", "eval/events.out.tfevents.1"});
  EXPECT_EQ(complete(Rule::Rename), (Names{"D_1000.pth", "G_1000.pth"}));
}

// guided_diffusion/train_util.py: model000100.pt, ema_0.9999_000100.pt, opt000100.pt.
TEST_F(Frameworks, GuidedDiffusion) {
  tree({"model000100.pt", "ema_0.9999_000100.pt", "opt000100.pt", "progress.csv"});
  EXPECT_EQ(complete(Rule::Rename), (Names{"opt000100.pt", "ema_0.9999_000100.pt", "model000100.pt"}));
}

// The rule's proof says more than the name.
TEST_F(Frameworks, AFolderWithAProofIsACheckpointWhateverItsName) {
  tree({"2026-11-27/x", "2026-11-27/DONE", "results/x", "runs/events"});
  EXPECT_EQ(complete(Rule::Marker, "DONE"), Names{"2026-11-27"});
  EXPECT_EQ(settled(Rule::Marker, "DONE").size(), 1u);
}

// orbax/checkpoint/_src/path/atomicity_types.py, TMP_DIR_SUFFIX; step names as in step_test.py.
TEST_F(Frameworks, Orbax) {
  tree({"50/default/manifest.ocdbt", "50/_CHECKPOINT_METADATA", "checkpoint_60/d",
        "100.orbax-checkpoint-tmp-1703334121930256/d", "150.orbax-checkpoint-tmp/d"});
  EXPECT_EQ(complete(Rule::Rename), (Names{"checkpoint_60", "50"}));
}

// olmo_core/train/checkpoint.py: stepN-tmp is renamed, then .metadata.json is written.
TEST_F(Frameworks, OlmoCore) {
  tree({"step100/train/rank0.pt", "step100/model_and_optim/.metadata", "step100/.metadata.json",
        "step200/train/rank0.pt", "step300-tmp/train/rank0.pt", "config.json"});
  EXPECT_EQ(complete(Rule::Marker, ".metadata.json"), Names{"step100"});
}

// mmengine/hooks/checkpoint_hook.py: iter_{}.pth, best_….pth, the file last_checkpoint.
TEST_F(Frameworks, MmEngine) {
  tree({"iter_1000.pth", "iter_2000.pth", "best_coco_bbox_mAP_iter_1000.pth", "last_checkpoint", "config.py",
        "20261127_103000/vis_data/scalars.json", "20261127_103000/20261127_103000.log"});
  EXPECT_EQ(complete(Rule::Rename), (Names{"iter_2000.pth", "iter_1000.pth"}));
}

// fvcore/common/checkpoint.py: "{}_{:07d}", "{}_final", last_checkpoint.
TEST_F(Frameworks, Detectron2) {
  tree({"model_0004999.pth", "model_0009999.pth", "model_final.pth", "last_checkpoint", "metrics.json",
        "log.txt", "config.yaml", "inference/", "events.out.tfevents.1"});
  EXPECT_EQ(settled(Rule::Rename)[0].name, "model_0009999.pth");
  EXPECT_EQ(complete(Rule::Rename).back(), "model_final.pth");
  EXPECT_EQ(complete(Rule::Rename).size(), 3u);
}

// nanotron/trainer.py, save_checkpoint: latest.txt, then model_config.json as the last file of the
// checkpoint.
TEST_F(Frameworks, Nanotron) {
  tree({"10/checkpoint_metadata.json", "10/model/x.safetensors", "latest.txt", "10/model_config.json",
        "20/checkpoint_metadata.json", "20/model/x.safetensors"});
  EXPECT_EQ(complete(Rule::Marker, "model_config.json"), Names{"10"});
}

// torchtune/training/checkpointing/_utils.py: ^epoch_(\d+); recipe_state/recipe_state.pt.
TEST_F(Frameworks, Torchtune) {
  tree({"epoch_0/model-00001-of-00001.safetensors", "epoch_0/recipe_state.pt", "epoch_0/DONE",
        "epoch_1/model-00001-of-00001.safetensors", "recipe_state/recipe_state.pt", "logs/",
        "torchtune_config.yaml"});
  EXPECT_EQ(complete(Rule::Marker, "DONE"), Names{"epoch_0"});
}

}  // namespace
}  // namespace spark::staging
