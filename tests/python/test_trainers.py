"""Smoke runs under trainers that wrap a model's steps: Hugging Face's and Lightning's. Skipped where they are not installed."""

import pytest
import torch

import cxxinductor


class Rows(torch.utils.data.Dataset):
    def __init__(self, count=16):
        generator = torch.Generator().manual_seed(3)
        self.x = torch.randn(count, 6, generator=generator)
        self.y = torch.randint(0, 3, (count,), generator=generator)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return {"x": self.x[i], "labels": self.y[i]}


class Classifier(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(5)
        self.layers = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.GELU(), torch.nn.Dropout(0.1), torch.nn.Linear(16, 3))

    def forward(self, x, labels=None):
        logits = self.layers(x)
        return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}


def assert_trained_alike(eager, compiled, atol=1e-5):
    for (name, theirs), ours in zip(eager.items(), compiled.values(), strict=True):
        torch.testing.assert_close(ours.cpu(), theirs.cpu(), rtol=1e-4, atol=atol, msg=lambda text: f"{name}: {text}")  # noqa: B023
    counters = cxxinductor.counters()
    assert counters["graphs"] >= 2 and counters["eager_fallback"] == 0 and counters["aten_fallback"] == 0


def train_with_hugging_face(folder, device, compile_settings=None):
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    settings = transformers.TrainingArguments(
        output_dir=str(folder), per_device_train_batch_size=4, max_steps=6, logging_strategy="no", save_strategy="no", report_to=[], seed=1,
        use_cpu=device == "cpu", dataloader_pin_memory=False, disable_tqdm=True,
    )  # fmt: skip
    settings._n_gpu = min(settings.n_gpu, 1)  # several would be nn.DataParallel, which torch.compile does not take
    model = Classifier()
    if compile_settings is not None:  # torch_compile_backend takes only names that accelerate knows
        model.compile(backend="cxxinductor", **compile_settings)
    trainer = transformers.Trainer(model=model, args=settings, train_dataset=Rows())
    trainer.train()
    assert torch.isfinite(torch.tensor(trainer.evaluate(Rows(8))["eval_loss"]))
    return model.state_dict()


@pytest.mark.parametrize("mode", [None, "reduce-overhead"])
def test_hugging_face_trainer(tmp_path, device, mode):
    eager = train_with_hugging_face(tmp_path, device)
    assert cxxinductor.counters()["graphs"] == 0
    compiled = train_with_hugging_face(tmp_path, device, {"mode": mode})
    assert_trained_alike(eager, compiled)


def test_lightning(tmp_path, device):
    try:
        import lightning
    except ImportError:
        lightning = pytest.importorskip("pytorch_lightning")

    class Module(lightning.LightningModule):
        def __init__(self, compiled):
            super().__init__()
            self.model = Classifier()
            if compiled:
                self.model.compile(backend="cxxinductor")

        def training_step(self, batch, index):
            return self.model(**batch)["loss"]

        def validation_step(self, batch, index):
            self.log("loss", self.model(**batch)["loss"])

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters(), lr=1e-2)

    def train(compiled):
        lightning.seed_everything(1)
        module = Module(compiled)
        quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}
        trainer = lightning.Trainer(
            max_epochs=2, accelerator="cpu" if device == "cpu" else "gpu", devices=1, default_root_dir=str(tmp_path), **quiet
        )
        rows = torch.utils.data.DataLoader(Rows(), batch_size=4)
        trainer.fit(module, rows, rows)
        return module.model.state_dict()

    assert_trained_alike(train(False), train(True))
