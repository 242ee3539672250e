"""ImageNet, SimCLR: ResNet50 at 224 pixels, SimCLR's transform, batch 4096, pictures streamed.

    pip install 'invclr_jax[stream]'
    invclr train --config=imagenet --config.data.path=DIR --workdir=runs/imagenet
    invclr evaluate --workdir=runs/imagenet --protocol=untransformed,knn

DIR holds train/CLASS/*.JPEG and val/CLASS/*.JPEG, or Hugging Face's parquet files
(--config.data.stream.test=validation), or tfds' imagenet2012/5.1.0 as array_record.
Hardware: Chen et al. used 128 TPU v3 cores. Not yet run by us; `invclr plan --config=imagenet` says
what fits where.
Expected (linear probe): 69.3 % after 1000 epochs (Chen et al. 2020, arXiv 2002.05709); 66.6 % after
200 at batch 8192 (as quoted in arXiv 2003.04297, table 2);
both from memory, not looked up. The penalty is off, because its weight
for ImageNet is not known; --config.penalty.weight=0.1 turns it on.
"""

from invclr_jax.config import default_config


def get_config():
    config = default_config()
    config.num_epochs = 100
    config.batch_size = 4096
    config.model.name = "resnet50"
    config.model.stem = "standard"
    config.model.dtype = "bfloat16"
    config.contrastive.loss = "nt_xent"
    config.contrastive.temperature = 0.1
    config.penalty.weight = 0.0
    config.optimizer.name = "lars"
    config.optimizer.base_learning_rate = 4.8  # 0.3 · 4096/256
    config.optimizer.weight_decay = 1e-6
    config.optimizer.mask = "batch_norm_and_bias"
    config.data.name = "stream"
    config.data.stream.size = 256
    config.data.stream.on_error = "skip"  # ImageNet has a PNG and some CMYK files among its JPEGs
    config.data.stream.statistics = 0
    config.transform.name = "simclr"
    config.transform.size = 224
    config.transform.mean = (0.485, 0.456, 0.406)
    config.transform.std = (0.229, 0.224, 0.225)
    config.checkpoint.every_steps = 1000
    return config
