"""WebShop (Yao et al. 2022): buy what an instruction asks for."""
