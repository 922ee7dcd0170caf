# Prénom de l’élève déjà noté, à vérifier
nom = "Zoé"
