python train.py
fairbits init ../people.csv --model scoring:approval --trust-code --yes \
  --target approved --favourable yes --protected sex,nationality,age
fairbits audit subject.toml --trust-code --budget 20s --out run
