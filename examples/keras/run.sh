python train.py
fairbits init encoded.csv --model model.keras --yes \
  --target approved --favourable yes --protected sex,nationality,age
fairbits audit subject.toml --budget 20s --out run
